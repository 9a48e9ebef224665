package proxy

import (
	"bytes"
	"math"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// rig drives sessions in memory: it holds what production's loops hold, without
// a socket, a goroutine or a clock, and no rule. The test plays both sides.
type rig struct {
	t     testing.TB
	world *World
	now   int64
	ends  map[ConnID]*end
	queue []posted
	facts *fakeLaunches
	seen  []Decision
	corr  uint64
}

type posted struct {
	id ConnID
	e  Event
}

// fakeLaunches answers at once, unless it is told to wait.
type fakeLaunches struct {
	configured map[string]bool
	stale      map[string]bool // module ids whose launch is not current
	identity   Answer
	hello      Answer
	waiting    bool
	asked      []Question
	severed    []ConnID
	replies    []func()
}

func (f *fakeLaunches) Registered(ConnID, string, string) {}
func (f *fakeLaunches) Severed(id ConnID)                 { f.severed = append(f.severed, id) }
func (f *fakeLaunches) Unregistered(ConnID)               {}

func (f *fakeLaunches) Ask(q Question, reply func(Answer)) {
	f.asked = append(f.asked, q)
	var a Answer
	switch q.Kind {
	case AskRoster:
		a.Configured = f.configured[q.ModuleID]
	case AskStanding:
		a.Current, a.Launch = !f.stale[q.ModuleID], 1
	case AskIdentity:
		a = f.identity
	case AskHello:
		a = f.hello
	}
	if f.waiting {
		f.replies = append(f.replies, func() { reply(a) })
		return
	}
	reply(a)
}

// answer lets every waiting question be answered.
func (f *fakeLaunches) answer() {
	replies := f.replies
	f.replies = nil
	for _, r := range replies {
		r()
	}
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, ends: make(map[ConnID]*end), now: 1_700_000_000_000,
		facts: &fakeLaunches{configured: map[string]bool{}, stale: map[string]bool{}}}
	r.world = &World{
		Table:    table.New(table.Config{Incarnation: "00112233445566778899aabbccddeeff", AuthorityOwners: []string{"owner"}}),
		log:      zap.NewNop(),
		launches: r.facts, recorder: r,
		now:   func() int64 { return r.now },
		post:  func(id ConnID, e Event) { r.queue = append(r.queue, posted{id, e}) },
		work:  func(job func()) { job() },
		opens: make(map[string]*open),
	}
	return r
}

func (r *rig) Record(d Decision) { r.seen = append(r.seen, d) }

// run delivers every posted event, and those that they post.
func (r *rig) run() {
	for len(r.queue) > 0 {
		p := r.queue[0]
		r.queue = r.queue[1:]
		if e := r.ends[p.id]; e != nil {
			e.s.Handle(p.e)
		}
	}
}

// end is one session with the bytes that it wrote.
type end struct {
	r       *rig
	s       *Session
	written [2]bytes.Buffer
}

func (r *rig) connect() *end {
	id := ConnID(len(r.ends) + 1)
	e := &end{r: r, s: newSession(id, r.world)}
	e.s.Refill(math.MaxInt32) // nothing of what it asks for has to wait
	r.ends[id] = e
	return e
}

func (e *end) collect() {
	for d := range e.s.outs {
		segs, _ := e.s.outs[d].take()
		for _, b := range segs {
			e.written[d].Write(b)
		}
	}
}

// fromPeer and fromRouter feed bytes; events they cause are not yet delivered.
func (e *end) fromPeer(frames ...[]byte) {
	e.s.FromPeer(bytes.Join(frames, nil))
	e.collect()
}

func (e *end) fromRouter(frames ...[]byte) {
	e.s.FromRouter(bytes.Join(frames, nil))
	e.collect()
}

// takeFrames returns and forgets the whole frames written one way.
func (e *end) takeFrames(d direction) []wire.Frame {
	e.r.run()
	e.collect()
	var frames []wire.Frame
	for e.written[d].Len() > 0 {
		f, err := wire.ReadFrame(&e.written[d])
		require.NoError(e.r.t, err)
		frames = append(frames, f)
	}
	return frames
}

func (e *end) toPeer() []wire.Frame   { return e.takeFrames(toPeer) }
func (e *end) toRouter() []wire.Frame { return e.takeFrames(toRouter) }

// one is the only frame of a list.
func (r *rig) one(frames []wire.Frame) wire.Frame {
	r.t.Helper()
	require.Len(r.t, frames, 1)
	return frames[0]
}

// frame renders a control frame whose body is v, or v's bytes.
func frame(ty wire.Type, corr uint64, v any) []byte {
	var body []byte
	switch v := v.(type) {
	case nil:
	case string:
		body = []byte(v)
	default:
		body = wire.MustMarshal(v)
	}
	return wire.AppendFrame(nil, wire.Header{Type: ty, Corr: corr}, body)
}

func data(ty wire.Type, channel uint16, epoch uint32, body string) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: ty, Channel: channel, Epoch: epoch, Corr: 9}, []byte(body))
}

type doc = map[string]any

func body(t testing.TB, f wire.Frame) doc {
	t.Helper()
	var d doc
	require.NoError(t, json.Unmarshal(f.Body, &d), "%s", f.Body)
	return d
}

// module registers a module that provides caps.
func (r *rig) module(id string, caps ...string) *end {
	r.facts.configured[id] = true
	e := r.connect()
	e.fromPeer(frame(wire.Hello, 1, doc{"protocol_ver": 2, "launch_nonce": "nonce-" + id,
		"manifest": doc{"module_id": id, "capabilities": doc{"provides": caps}}}))
	require.Equal(r.t, wire.Hello, r.one(e.toRouter()).Type)
	e.fromRouter(frame(wire.HelloAck, 1, doc{"negotiated_ver": 2, "subc_ops": []string{}, "subc_capabilities": []string{}}))
	require.Equal(r.t, wire.HelloAck, r.one(e.toPeer()).Type)
	return e
}

// call sends an owner's request and returns its reply.
func (e *end) call(op string, d doc) wire.Frame {
	e.r.t.Helper()
	e.r.corr++
	d["op"] = op
	e.fromPeer(frame(wire.Request, 100+e.r.corr, d))
	f := e.r.one(e.toPeer())
	require.Equal(e.r.t, 100+e.r.corr, f.Corr)
	return f
}

func (e *end) sync(generation int, scopes ...doc) {
	e.r.t.Helper()
	if scopes == nil {
		scopes = []doc{}
	}
	f := e.call(wire.OpScopeSync, doc{"generation": generation, "scopes": scopes})
	require.Equal(e.r.t, wire.Response, f.Type, "%s", f.Body)
}

func record(ref string, epoch int, carriers ...doc) doc {
	d := doc{"ref": ref, "scope_epoch": epoch, "kind": "head"}
	if len(carriers) > 0 {
		d["carriers"] = carriers
	}
	return d
}

var directCarrier = doc{"principal": doc{"kind": "direct"}}

func selector(ref string, epoch int) doc {
	return doc{"owner": doc{"kind": "reserved", "module_id": "owner"}, "ref": ref, "scope_epoch": epoch}
}

// openBody is a route.open to tool; more members are laid over it.
func openBody(more doc) doc {
	d := doc{"op": wire.OpRouteOpen, "target": doc{"kind": "tool_provider", "module_id": "tool"},
		"identity": doc{"project_root": "/p", "harness": "h", "session": "s"}}
	for k, v := range more {
		d[k] = v
	}
	return d
}

// relayed is an open on its way: what the router would put on the bind.
func (r *rig) relayed(c *end) doc {
	r.t.Helper()
	d := body(r.t, r.one(c.toRouter()))
	principal := doc{"kind": "direct"}
	if id, ok := d["consumer_identity"].(map[string]any); ok {
		principal = doc{"kind": "reserved", "module_id": id["module_id"]}
	}
	b := doc{"op": wire.OpRouteBind, "target": d["target"], "identity": d["identity"], "principal": principal}
	if caps, ok := d["consumer_capabilities"]; ok {
		b["consumer_capabilities"] = caps
	}
	return b
}

// bindTo plays the router: it relays the open that c has just sent to m.
func (r *rig) bindTo(c, m *end, corr uint64, channel uint16, epoch uint32) {
	r.t.Helper()
	b := r.relayed(c)
	b["route_channel"], b["epoch"] = channel, epoch
	m.fromRouter(frame(wire.Request, corr, b))
}

// opened takes a scoped open of ref@epoch from c through m to its answer on
// channel, in both spaces.
func (r *rig) opened(c, m *end, ref string, epoch int, channel uint16) {
	r.t.Helper()
	r.corr++
	corr := r.corr
	c.fromPeer(frame(wire.Request, corr, openBody(doc{"scope": selector(ref, epoch)})))
	r.bindTo(c, m, 500+corr, channel, 1)
	require.Equal(r.t, wire.Request, r.one(m.toPeer()).Type)
	m.fromPeer(frame(wire.Response, 500+corr, doc{"op": wire.OpRouteBind}))
	require.Equal(r.t, wire.Response, r.one(m.toRouter()).Type)
	c.fromRouter(frame(wire.Response, corr, doc{"op": wire.OpRouteOpen, "route_channel": channel, "route_epoch": 1}))
	require.Equal(r.t, wire.Response, r.one(c.toPeer()).Type)
}

// code is the code of an Error frame.
func (r *rig) code(f wire.Frame) string {
	r.t.Helper()
	require.Equal(r.t, wire.Error, f.Type, "%s", f.Body)
	return body(r.t, f)["code"].(string)
}
