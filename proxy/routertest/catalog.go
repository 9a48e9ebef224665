package routertest

import (
	"fmt"
	"maps"
	"slices"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// clientRequest answers a Request on channel 0 of a client.
func (r *Router) clientRequest(c *conn, f wire.Frame) [][]byte {
	op, err := readTag(f.Body, "op")
	if err != nil {
		return malformed(f, err)
	}
	switch {
	case contains(moduleOps, op):
		return refuse(f, "not_registered", op+" needs a registration on this connection")
	case !contains(clientOps, op):
		return refuse(f, wire.CodeUnknownControlOp, fmt.Sprintf("unknown op %q", op))
	}
	var replies [][]byte
	switch op {
	case wire.OpServerDescribe:
		return answer(f, r.describe())
	case wire.OpCatalogList:
		replies, err = r.catalogList(f)
	case wire.OpRouteOpen:
		replies, err = r.routeOpen(c, f)
	case wire.OpRoutePoll:
		replies, err = r.routePoll(c, f)
	case wire.OpSupervisorList:
		return answer(f, r.supervisorList())
	case wire.OpSupervisorRoutes:
		replies, err = r.supervisorRoutes(f)
	case wire.OpSupervisorRestart:
		replies, err = r.supervisorRestart(f)
	case wire.OpSupervisorSwap:
		replies, err = r.supervisorSwap(c, f)
	case opRescan:
		replies, err = r.supervisorRescan(f)
	case opSetEnabled:
		replies, err = r.supervisorSetEnabled(f)
	case wire.OpSpawnSnapshot:
		return answer(f, r.spawnSnapshot())
	case wire.OpSpawnSubscribe:
		replies, err = r.spawnSubscribe(c, f)
	case wire.OpRouteClosing, wire.OpRouteClosed:
		err = fmt.Errorf("unknown variant %q", op)
	default:
		return refuse(f, wire.CodeTargetUnavailable, "the stub router does not serve "+op)
	}
	if err != nil {
		return malformed(f, err)
	}
	return replies
}

func malformed(f wire.Frame, err error) [][]byte {
	return refuse(f, wire.CodeInvalidControlBody, "malformed control body: "+err.Error())
}

// moduleRequest answers a Request on channel 0 of a module.
func (r *Router) moduleRequest(c *conn, f wire.Frame) [][]byte {
	op, err := readTag(f.Body, "op")
	if err != nil || !contains(moduleOps, op) {
		return refuse(f, wire.CodeUnsupportedControlFrame, "a module may not ask this")
	}
	if op == wire.OpSupervisorLiveRoot {
		return answer(f, r.liveRoots(c.endpoint.id))
	}
	replies, err := r.catalogUpdate(c, f)
	if err != nil {
		return malformed(f, err)
	}
	return replies
}

type describeBody struct {
	Op               string         `json:"op"`
	ProtocolVer      int            `json:"protocol_ver"`
	SubcOps          []string       `json:"subc_ops"`
	Capabilities     []string       `json:"capabilities"`
	ConnectedClients int            `json:"connected_clients"`
	Counters         map[string]int `json:"counters"`
	BuildGitSHA      string         `json:"build_git_sha"`
	BuildLockDigest  string         `json:"build_lock_digest"`
	MachineID        string         `json:"machine_id"`
}

func (r *Router) describe() describeBody {
	with, most := 0, 0
	for c := range r.conns {
		if n := len(c.routes); n > 0 {
			with, most = with+1, max(most, n)
		}
	}
	return describeBody{
		Op: wire.OpServerDescribe, ProtocolVer: wire.Version, SubcOps: clientOps, Capabilities: routerCapabilities,
		ConnectedClients: len(r.conns),
		Counters:         map[string]int{"client_connections_with_routes": with, "max_routes_on_one_connection": most},
		BuildGitSHA:      "unavailable", BuildLockDigest: "unavailable", MachineID: r.machineID,
	}
}

type catalogEntry struct {
	ModuleID      string           `json:"module_id"`
	Ready         bool             `json:"ready"`
	NotReady      *notReady        `json:"not_ready,omitzero"`
	ModuleVersion string           `json:"module_version"`
	Roles         []jsontext.Value `json:"roles"`
	ControlOps    []string         `json:"control_ops"`
	Capabilities  *capabilities    `json:"capabilities,omitzero"`
	SelfSignals   jsontext.Value   `json:"self_signals,omitzero"`
}

type notReady struct {
	Reason     string `json:"reason"`
	Capability string `json:"capability,omitzero"`
}

func (r *Router) catalogList(f wire.Frame) ([][]byte, error) {
	s, err := readShape(f.Body, "op", "module_id")
	if err != nil {
		return nil, err
	}
	only, err := s.optionalText("module_id")
	if err != nil {
		return nil, err
	}
	entries := []catalogEntry{}
	for _, id := range slices.Sorted(maps.Keys(r.registry)) {
		if !s.absent("module_id") && id != only {
			continue
		}
		reg := r.registry[id]
		why := r.notReady(reg)
		e := catalogEntry{
			ModuleID: id, Ready: why == nil, NotReady: why, ModuleVersion: reg.version,
			Roles: []jsontext.Value{}, ControlOps: reg.controlOps, Capabilities: reg.caps, SelfSignals: reg.signals,
		}
		for _, role := range reg.roles {
			e.Roles = append(e.Roles, role.raw)
		}
		entries = append(entries, e)
	}
	return answer(f, struct {
		Op         string         `json:"op"`
		Generation uint64         `json:"generation"`
		Modules    []catalogEntry `json:"modules"`
		SubcOps    []string       `json:"subc_ops"`
	}{wire.OpCatalogList, r.generation, entries, clientOps}), nil
}

// notReady says why reg takes no opens yet, or nil.
func (r *Router) notReady(reg *registration) *notReady {
	if !reg.ready {
		return &notReady{Reason: "declared_not_ready"}
	}
	if c, missing := r.unprovided(reg); missing {
		return &notReady{Reason: "required_capability_unprovided", Capability: c}
	}
	return nil
}

// unprovided returns a capability that reg requires and no registered module
// provides.
func (r *Router) unprovided(reg *registration) (string, bool) {
	if reg.caps == nil {
		return "", false
	}
	for _, req := range reg.caps.Requires {
		if req.Need == "required" && !r.provided(req.Capability) {
			return req.Capability, true
		}
	}
	return "", false
}

func (r *Router) provided(capability string) bool {
	for _, reg := range r.registry {
		if reg.caps != nil && contains(reg.caps.Provides, capability) {
			return true
		}
	}
	return false
}

func (r *Router) catalogUpdate(c *conn, f wire.Frame) ([][]byte, error) {
	s, err := readShape(f.Body, "op", "provides", "capabilities", "ready")
	if err != nil {
		return nil, err
	}
	roles, err := s.roles("provides")
	if err != nil {
		return nil, err
	}
	caps, err := s.capabilities("capabilities")
	if err != nil {
		return nil, err
	}
	var ready bool
	if !s.absent("ready") {
		if err := s.into("ready", &ready); err != nil {
			return nil, err
		}
	}
	reg := r.registrationOf(c)
	if reg == nil {
		return refuse(f, "not_registered", "catalog.update needs a registration on this connection"), nil
	}
	if !slices.Equal(kinds(reg.roles), kinds(roles)) {
		return refuse(f, "catalog_update_frozen_field", "the kinds of roles are fixed at HELLO"), nil
	}
	if err := caps.grammar(); err != nil {
		return refuse(f, "invalid_capability_grammar", err.Error()), nil
	}
	reg.roles = roles
	if caps != nil {
		reg.caps = caps
	}
	if !s.absent("ready") {
		reg.ready = ready
	}
	if r.registry[reg.id] == reg {
		r.generation++
	}
	replies := answer(f, opOnly{wire.OpCatalogUpdate})
	// The candidate is answered before it is promoted.
	c.out.push(replies[0])
	r.candidateChanged(reg)
	return nil, nil
}

type opOnly struct {
	Op string `json:"op"`
}

// kinds are the different kinds of roles, sorted.
func kinds(roles []role) []string {
	var out []string
	for _, r := range roles {
		out = append(out, r.kind)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// registrationOf is what c registered last, in the catalog or as a candidate.
func (r *Router) registrationOf(c *conn) *registration {
	if c.endpoint == nil {
		return nil
	}
	if reg := r.registry[c.endpoint.id]; reg != nil && reg.conn == c {
		return reg
	}
	if m := r.roster[c.endpoint.id]; m != nil && m.swap != nil && m.swap.reg != nil && m.swap.reg.conn == c {
		return m.swap.reg
	}
	return nil
}
