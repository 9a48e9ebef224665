package routertest

import (
	"errors"
	"fmt"
	"strings"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// What the router advertises.
var (
	clientOps = []string{
		"server.describe", "catalog.list", "route.open", "route.poll", "route.closing", "route.closed",
		"supervisor.list", "supervisor.restart", "supervisor.swap", "supervisor.reload", "supervisor.rescan",
		"supervisor.release_reserved", "supervisor.set_enabled", "supervisor.health_probe", "supervisor.health",
		"supervisor.stderr_tail", "supervisor.terminals", "supervisor.routes", "supervisor.provenance",
		"supervisor.spawn_snapshot", "supervisor.spawn_subscribe",
	}
	moduleOps          = []string{wire.OpCatalogUpdate, wire.OpSupervisorLiveRoot}
	routerCapabilities = []string{
		"manifest_registration_v1", "channel_lifecycle_v1", "ping_pong_v1", "session_attach_v1",
		"admission_facts_relay_v1",
	}
	baselineOps = []string{wire.OpRouteBind, wire.OpRouteStatus}
)

// registration is a module in the catalog, or a swap's candidate on its way
// there.
type registration struct {
	conn       *conn
	endpoint   *endpoint // nil once another Hello on its connection took its place
	id         string
	version    string
	ready      bool
	roles      []role
	caps       *capabilities // nil: not declared
	controlOps []string
	signals    jsontext.Value
}

// role is one declared role as it came.
type role struct {
	kind      string
	serviceID string // of an internal_service
	raw       jsontext.Value
}

// capabilities is a manifest's declaration.
type capabilities struct {
	Provides       []string      `json:"provides"`
	Requires       []requirement `json:"requires"`
	MustNeverReach []string      `json:"must_never_reach"`
}

type requirement struct {
	Capability string `json:"capability"`
	Need       string `json:"need"`
}

// endpoint is where one registration's binds and routes go. Channels, epochs
// and corrs begin anew with each.
type endpoint struct {
	conn     *conn
	id       string
	routes   map[uint16]*route
	reserved map[uint16]*pending
	slots    slots
	pending  map[uint64]*pending // by corr
	nextCorr uint64
	draining string // the reason, "" while it serves
	quiet    func() // called when a drain has nothing left in flight
}

func newEndpoint(c *conn, id string) *endpoint {
	return &endpoint{
		conn: c, id: id, slots: newSlots(), nextCorr: 1,
		routes:   map[uint16]*route{},
		reserved: map[uint16]*pending{},
		pending:  map[uint64]*pending{},
	}
}

func (r *Router) hello(c *conn, f wire.Frame) [][]byte {
	h, body := readHello(f.Body)
	if body != nil {
		return refuseBody(f, *body)
	}
	reg := &registration{
		conn: c, id: h.id, version: h.version, ready: h.ready, roles: h.roles, caps: h.caps,
		controlOps: h.controlOps, signals: h.signals,
	}
	candidate := false
	switch r.swapAdmission(h.id, h.nonce) {
	case swapRefused:
		return refuse(f, "swap_token_invalid", fmt.Sprintf("module_id %q is being swapped and this is not its candidate's nonce", h.id))
	case swapCandidate:
		candidate = true
	default:
		if r.nonceRefused(h.id, h.nonce) {
			return refuse(f, wire.CodeReservedModule, fmt.Sprintf("module_id %q is reserved and this is not its launch nonce", h.id))
		}
	}
	if len(c.routes) > 0 {
		return refuse(f, wire.CodeInvalidHello, "the connection has open client routes")
	}
	if hazard(h.id) {
		return refuse(f, "invalid_module_id", fmt.Sprintf("module_id %q is not usable as a path component", h.id))
	}
	if !candidate && r.registry[h.id] != nil {
		return refuse(f, "duplicate_module_id", fmt.Sprintf("module_id %q is already registered", h.id))
	}
	r.register(reg, candidate, f.Corr)
	return nil
}

// register queues the ack before anything can be relayed to the module.
func (r *Router) register(reg *registration, candidate bool, corr uint64) {
	c := reg.conn
	c.out.push(r.helloAck(corr))
	if old := c.endpoint; old != nil {
		// Routes of an older Hello on this connection vanish without a word.
		r.removeEndpoint(old)
	}
	reg.endpoint = newEndpoint(c, reg.id)
	c.endpoint = reg.endpoint
	if candidate {
		r.candidateRegistered(reg)
		return
	}
	r.registry[reg.id] = reg
	r.endpoints[reg.id] = reg.endpoint
	r.generation++
	delete(r.breakers, reg.id)
}

func (r *Router) helloAck(corr uint64) []byte {
	body := struct {
		NegotiatedVer    int      `json:"negotiated_ver"`
		SubcOps          []string `json:"subc_ops"`
		SubcCapabilities []string `json:"subc_capabilities"`
		MachineID        string   `json:"machine_id"`
	}{wire.Version, append(append([]string{}, clientOps...), moduleOps...), routerCapabilities, r.machineID}
	return wire.AppendFrame(nil, wire.Header{Type: wire.HelloAck, Corr: corr}, wire.MustMarshal(body))
}

type helloBody struct {
	id, version, nonce string
	ready              bool
	roles              []role
	caps               *capabilities
	controlOps         []string
	signals            jsontext.Value
}

// readHello reads a Hello's body, or says how it is refused.
func readHello(body []byte) (helloBody, *wire.ErrorBody) {
	var h helloBody
	refused := func(code string, err error) (helloBody, *wire.ErrorBody) {
		return h, &wire.ErrorBody{Code: code, Message: "HELLO: " + err.Error()}
	}
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return refused(wire.CodeInvalidHello, errJSON)
	}
	if err := checkGrammar(body); err != nil {
		return refused("invalid_capability_grammar", err)
	}
	s, err := readShape(body, "manifest", "protocol_ver", "control_ops", "launch_nonce")
	if err != nil {
		return refused(wire.CodeInvalidHello, err)
	}
	var version, manifestVersion uint8
	manifest, ok := s["manifest"]
	if !ok {
		return refused(wire.CodeInvalidHello, errors.New(`missing field "manifest"`))
	}
	m, err := readShape(manifest, "module_id", "module_version", "protocol_ver", "trust_tier", "ready",
		"provides", "consumes", "bindings", "capabilities", "self_signals", "provenance")
	if err != nil {
		return refused(wire.CodeInvalidHello, err)
	}
	err = errors.Join(
		s.into("protocol_ver", &version),
		m.into("protocol_ver", &manifestVersion),
		readInto(&h.id, m.text, "module_id"),
		readInto(&h.version, m.text, "module_version"),
		readInto(&h.nonce, s.optionalText, "launch_nonce"),
		readInto(&h.roles, m.roles, "provides"),
		readInto(&h.caps, m.capabilities, "capabilities"),
	)
	h.ready = true
	if !m.absent("ready") {
		err = errors.Join(err, m.into("ready", &h.ready))
	}
	h.controlOps = baselineOps
	if !s.absent("control_ops") {
		declared, opsErr := s.texts("control_ops")
		err = errors.Join(err, opsErr)
		h.controlOps = union(baselineOps, declared)
	}
	if err == nil {
		err = h.caps.grammar()
	}
	if err != nil {
		return refused(wire.CodeInvalidHello, firstOf(err))
	}
	if !m.absent("self_signals") {
		h.signals = compact(m["self_signals"])
	}
	switch {
	case version != manifestVersion:
		return refused("invalid_manifest", errors.New("protocol_ver differs from the manifest's"))
	case strings.TrimSpace(h.id) == "":
		return refused("invalid_manifest", errors.New("module_id is empty"))
	case version != wire.Version:
		return refused("version_unsupported", fmt.Errorf("protocol_ver %d is unsupported", version))
	}
	return h, nil
}

func readInto[T any](dst *T, read func(string) (T, error), name string) error {
	v, err := read(name)
	*dst = v
	return err
}

// firstOf is the first of joined errors: a refusal names one thing.
func firstOf(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return firstOf(joined.Unwrap()[0])
	}
	return err
}

func union(a, b []string) []string {
	out := append([]string{}, a...)
	for _, s := range b {
		if !contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// hazard reports whether id may not name a folder.
func hazard(id string) bool {
	return id == "." || id == ".." || strings.ContainsAny(id, "/\\\x00")
}
