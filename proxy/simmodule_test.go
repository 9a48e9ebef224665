package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"scopeward/admission"
	"scopeward/proxy/wire"
)

// simModule is a module. Every one serves tools; an owner has scopes as well.
type simModule struct {
	simEnd
	id         string
	nonce      int
	hello      uint64 // corr of the Hello under way
	registered bool
	binds      []simBind
	serves     map[leg]*simServe
	calls      []uint64 // scope calls, in order
	updates    map[uint64]bool
	owner      *simOwner
}

type simBind struct {
	corr uint64
	at   leg
	tag  string
	over bool // the router gave it up
}

// simServe is a route as its module serves it.
type simServe struct {
	tag   string
	calls []uint64
	over  bool
}

func (s *sim) module(id string) *simModule {
	m := &simModule{id: id, serves: map[leg]*simServe{}, updates: map[uint64]bool{}}
	m.sim = s
	m.link = s.connect(func(*simLink) simPeer { return m })
	if id == "owner" || id == "child" {
		i := slices.IndexFunc(s.owners, func(o *simOwner) bool { return o.id == id })
		if i < 0 {
			s.owners = append(s.owners, newSimOwner(id))
			i = len(s.owners) - 1
		}
		m.owner = s.owners[i]
	}
	s.launches[id]++
	m.nonce = s.launches[id]
	m.register()
	return m
}

// arrive brings who is missing.
func (s *sim) arrive() {
	clients, there := 0, map[string]bool{}
	for _, l := range s.links {
		switch p := l.peer.(type) {
		case *simClient:
			clients++
		case *simModule:
			there[p.id] = true
		}
	}
	for _, id := range []string{"owner", "child", "tool", "slow"} {
		if !there[id] {
			s.note("%s arrives", id)
			s.module(id)
			return
		}
	}
	if clients < 5 {
		s.note("a client arrives")
		s.client()
	}
}

func (m *simModule) name() string { return fmt.Sprintf("%s %d", m.id, m.link.id) }

func (m *simModule) register() {
	m.corr++
	m.hello = m.corr
	var caps []string
	if m.id == "tool" {
		caps = []string{string(admission.CallModes)}
	}
	m.send(wire.Header{Type: wire.Hello, Corr: m.hello}, wire.MustMarshal(doc{"protocol_ver": 2, "launch_nonce": fmt.Sprintf("n%d", m.nonce),
		"manifest": doc{"module_id": m.id, "capabilities": doc{"provides": caps}}}))
}

func (m *simModule) act() {
	s := m.sim
	switch {
	case m.over || m.link.pipes[peerOut].shut || m.hello != 0:
		return
	case !m.registered:
		m.register()
		return
	}
	switch n := s.rng.IntN(100); {
	case n < 30 && m.owner != nil:
		m.calls = append(m.calls, m.request(m.owner.call(s)))
	case n < 60:
		m.answer()
	case n < 70:
		m.reply()
	case n < 78:
		if at, r := m.anyServe(); r != nil {
			m.send(wire.Header{Type: wire.Push, Channel: at.channel, Epoch: at.epoch}, payload(s, r.tag))
		}
	case n < 84:
		if at, r := m.anyServe(); r != nil {
			r.over = true
			m.goodbye(at)
		}
	case n < 90:
		m.calls = append(m.calls, m.request(doc{"op": wire.OpScopeDescribe,
			"owner": doc{"kind": "reserved", "module_id": pick(s, []string{"owner", "child", "stranger"})}, "ref": pick(s, simRefs)}))
	case n < 94:
		corr := m.request(doc{"op": wire.OpCatalogUpdate, "provides": []string{"tool_provider"}})
		m.updates[corr] = true
	case n < 96:
		s.note("%s says Goodbye on channel 0", m.name())
		m.goodbye(leg{})
		m.forget()
		m.fence = true
		m.register()
	case n < 97:
		s.note("the router dismisses %s", m.name())
		if m.link.far.module == m.id {
			s.router.dismiss(m.link.far)
		}
	}
}

// forget forgets what hung on the registration.
func (m *simModule) forget() {
	m.registered, m.binds = false, nil
	clear(m.serves)
}

// answer answers one of the binds that it holds back, in any order.
func (m *simModule) answer() {
	if len(m.binds) == 0 {
		return
	}
	b := take(m.sim, &m.binds)
	if m.sim.chance(10) {
		m.send(wire.Header{Type: wire.Error, Corr: b.corr}, wire.MustMarshal(wire.ErrorBody{Code: "no", Message: "m"}))
		return
	}
	if !b.over {
		m.serves[b.at] = &simServe{tag: b.tag}
	}
	m.send(wire.Header{Type: wire.Response, Corr: b.corr}, wire.MustMarshal(doc{"op": wire.OpRouteBind}))
}

func (m *simModule) anyServe() (leg, *simServe) {
	var live []leg
	for at, r := range m.serves {
		if !r.over {
			live = append(live, at)
		}
	}
	if len(live) == 0 {
		return leg{}, nil
	}
	slices.SortFunc(live, func(a, b leg) int { return int(a.channel) - int(b.channel) })
	at := pick(m.sim, live)
	return at, m.serves[at]
}

// reply answers the oldest call of a route.
func (m *simModule) reply() {
	if at, r := m.anyServe(); r != nil && len(r.calls) > 0 {
		m.replyTo(at, r)
	}
}

func (m *simModule) replyTo(at leg, r *simServe) {
	corr := r.calls[0]
	r.calls = r.calls[1:]
	m.send(wire.Header{Type: wire.Response, Channel: at.channel, Epoch: at.epoch, Corr: corr}, payload(m.sim, r.tag))
}

// obey answers everything that it has held back.
func (m *simModule) obey() {
	if m.over || m.link.pipes[peerOut].shut {
		return
	}
	for len(m.binds) > 0 {
		m.answer()
	}
	for _, at := range slices.SortedFunc(maps.Keys(m.serves), func(a, b leg) int { return int(a.channel) - int(b.channel) }) {
		for r := m.serves[at]; !r.over && len(r.calls) > 0; {
			m.replyTo(at, r)
		}
	}
}

func (m *simModule) receive(b []byte) {
	m.buf = append(m.buf, b...)
	m.sim.frames(m.name(), &m.buf, m.take)
}

func (m *simModule) take(f wire.Frame) {
	s := m.sim
	switch {
	case f.Corr == m.hello && (f.Type == wire.HelloAck || f.Type == wire.Error) && f.Channel == 0:
		m.hello, m.fence, m.registered = 0, false, f.Type == wire.HelloAck
	case m.fence && (f.Channel != 0 || f.Type == wire.Request || f.Type == wire.Goodbye):
	case f.Channel != 0:
		m.routed(f)
	case f.Type == wire.Goodbye:
		m.forget()
	case f.Type == wire.Request:
		m.bind(f)
	case f.Type == wire.Response, f.Type == wire.Error:
		if m.updates[f.Corr] {
			delete(m.updates, f.Corr)
			return
		}
		if len(m.calls) == 0 || m.calls[0] != f.Corr {
			s.fail("%s got an answer to %d, and waits for %v", m.name(), f.Corr, m.calls)
			return
		}
		m.calls = m.calls[1:]
	default:
		s.fail("%s got a %s on channel 0", m.name(), f.Type)
	}
}

// bind takes a bind: a scoped open's has a stamp, of what it named, and nobody
// else's has one. No mark reaches a module.
func (m *simModule) bind(f wire.Frame) {
	s := m.sim
	var b struct {
		Channel  uint16 `json:"route_channel"`
		Epoch    uint32 `json:"epoch"`
		Identity struct {
			Session string `json:"session"`
		} `json:"identity"`
		Scope *struct {
			Owner struct {
				ModuleID string `json:"module_id"`
			} `json:"owner"`
			Ref   string `json:"ref"`
			Epoch uint64 `json:"scope_epoch"`
		} `json:"scope"`
	}
	if err := json.Unmarshal(f.Body, &b, lenient); err != nil {
		s.fail("%s: a bind that is none: %v", m.name(), err)
		return
	}
	if strings.Contains(string(f.Body), wire.MarkPrefix) {
		s.fail("%s got a mark", m.name())
	}
	var got simRef
	if b.Scope != nil {
		got = simRef{b.Scope.Owner.ModuleID, b.Scope.Ref, b.Scope.Epoch}
	}
	if wanted := s.refs[b.Identity.Session]; got != wanted {
		s.fail("%s is bound to %v for an open of %v", m.name(), got, wanted)
	}
	m.binds = append(m.binds, simBind{corr: f.Corr, at: leg{b.Channel, b.Epoch}, tag: b.Identity.Session})
	if m.id != "slow" && s.chance(50) {
		m.answer()
	}
}

// routed takes a frame of a route that the module has accepted.
func (m *simModule) routed(f wire.Frame) {
	at := leg{f.Channel, f.Epoch}
	r := m.serves[at]
	if f.Type == wire.Goodbye {
		delete(m.serves, at)
		for i := range m.binds {
			m.binds[i].over = m.binds[i].over || m.binds[i].at == at
		}
		if m.sim.chance(50) { // the answer comes late, or never
			m.binds = slices.DeleteFunc(m.binds, func(b simBind) bool { return b.over })
		}
		return
	}
	switch {
	case r == nil:
		m.sim.fail("%s got a %s on %v, which it does not serve", m.name(), f.Type, at)
	case r.over:
	case tagOf(f.Body) != r.tag:
		m.sim.fail("%s got a frame of %s on %v of %s", m.name(), tagOf(f.Body), at, r.tag)
	case f.Type == wire.Request:
		r.calls = append(r.calls, f.Corr)
		if m.sim.chance(50) {
			m.replyTo(at, r)
		}
	}
}
