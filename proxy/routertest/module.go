package routertest

import (
	"bytes"
	"net"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Module is a provider, a scope owner, or both: a connection that says Hello.
// Binds wait for NextBind until Serve is called.
type Module struct {
	*Peer
	ID    string // of the last Hello
	roles any    // its roles, which a catalog.update repeats

	// Under the peer's lock.
	serving bool
	binds   []*Bind
}

// DialModule connects a module to the router, or the sidecar, whose connection
// file is at path. It says nothing yet.
func DialModule(tb TB, path string) *Module {
	tb.Helper()
	return DialModuleFile(tb, readFile(tb, path))
}

// DialModuleFile is DialModule for a file that was read.
func DialModuleFile(tb TB, f connfile.File) *Module {
	tb.Helper()
	return newModule(tb, dialFile(tb, f))
}

// DialModulePipe connects a module to r in memory.
func DialModulePipe(tb TB, r *Router) *Module {
	tb.Helper()
	return newModule(tb, dialPipe(tb, r))
}

func newModule(tb TB, nc net.Conn) *Module {
	m := &Module{}
	m.Peer = newPeer(tb, "module", nc, m.takes)
	return m
}

// HelloOption changes the body of a Hello.
type HelloOption func(hello, manifest Doc)

// Nonce presents a launch's nonce.
func Nonce(l Launch) HelloOption { return func(h, _ Doc) { h["launch_nonce"] = l.Nonce } }

// Declares sets the manifest's capabilities.
func Declares(provides ...string) HelloOption {
	return Manifest("capabilities", Doc{"provides": append([]string{}, provides...)})
}

// NotReady registers without taking binds. Ready ends that.
func NotReady() HelloOption { return Manifest("ready", false) }

// Roles sets the manifest's roles, a tool_provider otherwise.
func Roles(roles ...any) HelloOption { return Manifest("provides", append([]any{}, roles...)) }

// Manifest sets any member of the manifest.
func Manifest(name string, value any) HelloOption { return func(_, m Doc) { m[name] = value } }

// ToolProvider is the role declaration that a Hello makes by itself.
func ToolProvider() Doc {
	return Doc{
		"role": "tool_provider", "tools": []any{}, "identity_scope": []string{"project", "session"},
		"concurrency": "module_managed", "emits_push": true, "sub_supervises": false,
	}
}

// StartHello sends a Hello as id.
func (m *Module) StartHello(id string, opts ...HelloOption) *Call {
	manifest := Doc{
		"module_id": id, "module_version": "1.0.0", "protocol_ver": wire.Version, "provides": []any{ToolProvider()},
	}
	hello := Doc{"manifest": manifest, "protocol_ver": wire.Version}
	for _, o := range opts {
		o(hello, manifest)
	}
	m.ID, m.roles = id, manifest["provides"]
	m.name = "module " + id
	return m.Start(wire.Hello, wire.ControlChannel, 0, hello)
}

// Hello registers as id and returns the ack. A refusal fails the test.
func (m *Module) Hello(id string, opts ...HelloOption) Reply {
	m.tb.Helper()
	return m.StartHello(id, opts...).Wait().OK()
}

// Ready declares the module ready.
func (m *Module) Ready() Reply {
	m.tb.Helper()
	return m.Ask(Doc{"op": wire.OpCatalogUpdate, "provides": m.roles, "ready": true}).OK()
}

// Update replaces the declared capabilities.
func (m *Module) Update(provides ...string) Reply {
	m.tb.Helper()
	return m.Ask(Doc{
		"op": wire.OpCatalogUpdate, "provides": m.roles,
		"capabilities": Doc{"provides": append([]string{}, provides...)},
	}).OK()
}

// Sync sends a scope owner's full set.
func (m *Module) Sync(generation uint64, scopes ...any) Reply {
	m.tb.Helper()
	return m.Ask(Doc{"op": wire.OpScopeSync, "generation": generation, "scopes": append([]any{}, scopes...)})
}

// Apply sends a scope owner's delta.
func (m *Module) Apply(generation uint64, upsert, end []any) Reply {
	m.tb.Helper()
	return m.Ask(Doc{
		"op": wire.OpScopeApply, "generation": generation,
		"upsert": append([]any{}, upsert...), "end": append([]any{}, end...),
	})
}

// Describe reads one scope of the module owner.
func (m *Module) Describe(owner, ref string) Reply {
	m.tb.Helper()
	return m.Ask(Doc{"op": wire.OpScopeDescribe, "owner": Reserved(owner), "ref": ref})
}

// Reserved is the principal of a module.
func Reserved(id string) Doc { return Doc{"kind": "reserved", "module_id": id} }

// Direct is the principal of an opener that presents no identity.
func Direct() Doc { return Doc{"kind": "direct"} }

// Selector names a scope of the module owner.
func Selector(owner, ref string, epoch uint64) Doc {
	return Doc{"owner": Reserved(owner), "ref": ref, "scope_epoch": epoch}
}

// Bind is a route.bind as the module got it.
type Bind struct {
	m    *Module
	Corr uint64         `json:"-"`
	Raw  jsontext.Value `json:"-"` // the whole body

	Op           string         `json:"op"`
	Channel      uint16         `json:"route_channel"`
	Epoch        uint32         `json:"epoch"`
	Target       jsontext.Value `json:"target"`
	Identity     jsontext.Value `json:"identity"`
	Principal    jsontext.Value `json:"principal"`
	Capabilities *[]string      `json:"consumer_capabilities"` // nil: absent
	Scope        jsontext.Value `json:"scope"`                 // nil: absent
	CallMode     string         `json:"call_mode"`
	ExpiresAtMS  *uint64        `json:"expires_at_ms"`
}

func (b *Bind) pair() (uint16, uint32) { return b.Channel, b.Epoch }

// takes keeps binds from Next, and answers for a module that serves. It runs
// under the peer's lock.
func (m *Module) takes(f wire.Frame) bool {
	if f.Channel == wire.ControlChannel {
		b := m.readBind(f)
		if b == nil {
			return false
		}
		if m.serving {
			b.Ack()
		}
		m.binds = append(m.binds, b)
		return true
	}
	if !m.serving || f.Type != wire.Request {
		return false
	}
	h := f.Header
	h.Type = wire.Response
	m.Send(h, f.Body)
	return true
}

func (m *Module) readBind(f wire.Frame) *Bind {
	if f.Type != wire.Request || !bytes.Contains(f.Body, []byte(wire.OpRouteBind)) {
		return nil
	}
	b := &Bind{m: m, Corr: f.Corr, Raw: f.Body}
	if json.Unmarshal(f.Body, b) != nil || b.Op != wire.OpRouteBind {
		return nil
	}
	return b
}

// Serve accepts every bind from now on and echoes every request.
func (m *Module) Serve() *Module {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serving = true
	for _, b := range m.binds {
		b.Ack()
	}
	return m
}

// NextBind takes the next bind. When the module serves it has been accepted.
func (m *Module) NextBind() *Bind {
	m.tb.Helper()
	var b *Bind
	ok := m.await(func() bool {
		if len(m.binds) == 0 {
			return false
		}
		b, m.binds = m.binds[0], m.binds[1:]
		return true
	})
	if !ok {
		m.tb.Fatalf("%s: no bind: %s", m.name, m.why())
	}
	return b
}

// NoBind settles and fails the test if a bind is there.
func (m *Module) NoBind() {
	m.tb.Helper()
	m.Settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.binds) > 0 {
		m.tb.Fatalf("%s: wanted no bind, got %s", m.name, clip(m.binds[0].Raw))
	}
}

// Ack accepts the bind.
func (b *Bind) Ack() {
	b.m.Send(wire.Header{Type: wire.Response, Corr: b.Corr}, wire.MustMarshal(opOnly{wire.OpRouteBind}))
}

// Reject refuses the bind with a code of the module's own.
func (b *Bind) Reject(code string) {
	b.m.SendRaw(wire.AppendError(nil, wire.ControlChannel, 0, b.Corr, wire.ErrorBody{Code: code, Message: "the module says no"}))
}

// Send sends any frame on the bind's route.
func (b *Bind) Send(t wire.Type, flags wire.Flags, corr uint64, body []byte) {
	b.m.Send(wire.Header{Type: t, Flags: flags, Channel: b.Channel, Epoch: b.Epoch, Corr: corr}, body)
}

// Goodbye closes the bind's route.
func (b *Bind) Goodbye() { b.m.SendRaw(wire.AppendGoodbye(nil, b.Channel, b.Epoch)) }

// NextGoodbye waits for the Goodbye of the bind's route, which must be the next
// unasked frame.
func (b *Bind) NextGoodbye() {
	b.m.tb.Helper()
	b.m.NextGoodbye(b.Channel, b.Epoch)
}
