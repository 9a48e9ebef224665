package routertest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// target is what an open names. It renders as the router relays it.
type target struct {
	Kind      string `json:"kind"`
	ModuleID  string `json:"module_id"`
	ServiceID string `json:"service_id,omitzero"`
}

// identity is an opener's. On a bind its root is resolved.
type identity struct {
	ProjectRoot string  `json:"project_root"`
	Harness     string  `json:"harness"`
	Session     string  `json:"session"`
	ProjectID   *string `json:"project_id,omitzero"`
}

// principal is who the router attests.
type principal struct {
	Kind     string `json:"kind"`
	ModuleID string `json:"module_id,omitzero"`
}

// openRequest is a decoded route.open.
type openRequest struct {
	target   target
	identity identity
	claim    *claim // nil: none was made
	caps     []string
	hasCaps  bool // [] and absent differ on the bind
	facts    bool
}

type claim struct{ moduleID, nonce string }

func readOpen(body jsontext.Value) (openRequest, error) {
	var o openRequest
	s, err := readShape(body, "op", "target", "identity", "consumer_identity", "consumer_capabilities", "admission_facts")
	if err != nil {
		return o, err
	}
	if o.target, err = s.target("target"); err != nil {
		return o, err
	}
	if o.identity, err = s.identity("identity"); err != nil {
		return o, err
	}
	if !s.absent("consumer_identity") {
		d, err := readShape(s["consumer_identity"], "module_id", "launch_nonce")
		if err != nil {
			return o, err
		}
		o.claim = &claim{}
		err = errors.Join(readInto(&o.claim.moduleID, d.text, "module_id"), readInto(&o.claim.nonce, d.text, "launch_nonce"))
		if err != nil {
			return o, firstOf(err)
		}
	}
	if !s.absent("consumer_capabilities") {
		o.hasCaps = true
		if o.caps, err = s.texts("consumer_capabilities"); err != nil {
			return o, err
		}
	}
	o.facts = !s.absent("admission_facts")
	return o, nil
}

func (s shape) target(name string) (t target, err error) {
	raw, ok := s[name]
	if !ok {
		return t, fmt.Errorf("missing field %q", name)
	}
	if t.Kind, err = readTag(raw, "kind"); err != nil {
		return t, err
	}
	switch t.Kind {
	case "tool_provider", "management_surface", "internal_service":
	default:
		return t, fmt.Errorf("unknown variant %q", t.Kind)
	}
	names := []string{"kind", "module_id"}
	if t.Kind == "internal_service" {
		names = append(names, "service_id")
	}
	d, err := readShape(raw, names...)
	if err != nil {
		return t, err
	}
	if t.ModuleID, err = d.text("module_id"); err == nil && t.Kind == "internal_service" {
		t.ServiceID, err = d.text("service_id")
	}
	return t, err
}

func (s shape) identity(name string) (id identity, err error) {
	raw, ok := s[name]
	if !ok {
		return id, fmt.Errorf("missing field %q", name)
	}
	d, err := readShape(raw, "project_root", "harness", "session", "project_id")
	if err != nil {
		return id, err
	}
	err = errors.Join(
		readInto(&id.ProjectRoot, d.text, "project_root"),
		readInto(&id.Harness, d.text, "harness"),
		readInto(&id.Session, d.text, "session"),
	)
	if err != nil {
		return id, firstOf(err)
	}
	if !d.absent("project_id") {
		v, err := d.text("project_id")
		if err != nil {
			return id, err
		}
		id.ProjectID = &v
	}
	return id, nil
}

// routeOpen judges an open in the router's order. The first refusal is the
// answer.
func (r *Router) routeOpen(c *conn, f wire.Frame) ([][]byte, error) {
	o, err := readOpen(f.Body)
	if err != nil {
		return nil, err
	}
	if len(c.opens) >= MaxOpens {
		return refuse(f, wire.CodeTargetUnavailable, "8 opens of this connection are in flight"), nil
	}
	reg, body := r.judgeTarget(o)
	if body != nil {
		return refuseBody(f, *body), nil
	}
	who, ok := r.attest(o.claim)
	if !ok {
		return refuse(f, wire.CodeBadConsumerIdentity, fmt.Sprintf("consumer_identity for %q is no live launch's", o.claim.moduleID)), nil
	}
	if body := r.judgeRest(&o, reg); body != nil {
		return refuseBody(f, *body), nil
	}
	r.relayBind(c, f, o, who)
	return nil, nil
}

func refusal(code, format string, args ...any) *wire.ErrorBody {
	return &wire.ErrorBody{Code: code, Message: fmt.Sprintf(format, args...)}
}

// judgeTarget: known, ready, required capability, role, draining and liveness.
func (r *Router) judgeTarget(o openRequest) (*registration, *wire.ErrorBody) {
	id := o.target.ModuleID
	reg := r.registry[id]
	if reg == nil {
		return nil, r.judgeAbsent(id)
	}
	if why := r.notReady(reg); why != nil {
		return nil, &wire.ErrorBody{
			Code: "module_warming", Message: fmt.Sprintf("module_id %q is not ready", id), Detail: wire.MustMarshal(why),
		}
	}
	if !provides(reg.roles, o.target) {
		return nil, refusal(wire.CodeTargetUnavailable, "module_id %q does not provide this target", id)
	}
	ep := r.endpoints[id]
	if ep != nil && ep.draining != "" {
		return nil, refusal("module_reloading", "module_id %q is reloading", id)
	}
	if m := r.roster[id]; m != nil && m.launch == nil && m.generation > 0 {
		if m.state == stateRestarting || m.state == stateDraining {
			return nil, refusal("module_reloading", "module_id %q is reloading", id)
		}
		return nil, refusal(wire.CodeTargetUnavailable, "module_id %q is not live", id)
	}
	if ep == nil {
		return nil, refusal(wire.CodeTargetUnavailable, "module_id %q has no live connection", id)
	}
	return reg, nil
}

func (r *Router) judgeAbsent(id string) *wire.ErrorBody {
	m := r.roster[id]
	if m == nil {
		return refusal("unknown_module", "module_id %q is not registered", id)
	}
	code := wire.CodeTargetUnavailable
	switch m.state {
	case stateStarting, stateRunning, stateRestarting:
		code = "module_warming"
	}
	return refusal(code, "module_id %q is supervised but not available (state=%s)", id, m.state)
}

func provides(roles []role, t target) bool {
	for _, r := range roles {
		if r.kind == t.Kind && (t.Kind != "internal_service" || r.serviceID == t.ServiceID) {
			return true
		}
	}
	return false
}

// attest is the principal of a claim. No claim is a direct opener; a wrong one is
// refused and never downgraded.
func (r *Router) attest(c *claim) (principal, bool) {
	if c == nil {
		return principal{Kind: "direct"}, true
	}
	m := r.roster[c.moduleID]
	if m == nil || c.nonce == "" || !m.knowsNonce(c.nonce) {
		return principal{}, false
	}
	return principal{Kind: "reserved", ModuleID: c.moduleID}, true
}

// judgeRest: deny edge, admission facts, project root, the target's limit, its
// breaker. It resolves the root in place.
func (r *Router) judgeRest(o *openRequest, reg *registration) *wire.ErrorBody {
	id := o.target.ModuleID
	if c, denied := r.denied(o.claim, reg); denied {
		return refusal("capability_forbidden", "the opener must never reach %q", c)
	}
	if o.facts {
		return refusal("admission_facts_not_permitted", "no carrier of admission facts is configured")
	}
	root, ok := resolveRoot(o.identity.ProjectRoot)
	if !ok {
		return refusal("invalid_project_root", "project root does not exist: %s", o.identity.ProjectRoot)
	}
	o.identity.ProjectRoot = root
	if r.targetBinds[id] >= MaxBinds {
		return refusal(wire.CodeTargetUnavailable, "16 binds to %q are in flight", id)
	}
	if b := r.breakers[id]; b != nil && !b.admit() {
		return refusal("module_timeout", "module_id %q has not answered its last binds", id)
	}
	return nil
}

// denied reports a capability that the attested opener's module must never reach
// and the target provides.
func (r *Router) denied(c *claim, to *registration) (string, bool) {
	if c == nil || to.caps == nil {
		return "", false
	}
	from := r.registry[c.moduleID]
	if from == nil || from.caps == nil {
		return "", false
	}
	for _, edge := range from.caps.MustNeverReach {
		if contains(to.caps.Provides, edge) {
			return edge, true
		}
	}
	return "", false
}

// resolveRoot follows links as far as the path exists and keeps the rest. An
// empty path and one that climbs out of a folder that is not there name no root.
func resolveRoot(path string) (string, bool) {
	if path == "" {
		return "", false
	}
	base, rest := path, ""
	for {
		if real, err := filepath.EvalSymlinks(base); err == nil {
			abs, err := filepath.Abs(filepath.Join(real, rest))
			return abs, err == nil
		}
		name := base[strings.LastIndexByte(strings.TrimRight(base, "/"), '/')+1:]
		name = strings.TrimRight(name, "/")
		if name == ".." {
			return "", false
		}
		rest = filepath.Join(name, rest)
		up := strings.TrimRight(base, "/")
		up = up[:strings.LastIndexByte(up, '/')+1]
		switch up {
		case "":
			wd, err := os.Getwd()
			return filepath.Join(wd, rest), err == nil
		case base:
			return "", false
		}
		base = up
	}
}
