package proxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"scopeward/proxy/wire"
)

// simEnd is what clients and modules have in common. A fence is up from a Goodbye
// of theirs on channel 0 until the router has surely seen it: frames of routes
// that arrive before belong to what has ended.
type simEnd struct {
	sim   *sim
	link  *simLink
	buf   []byte
	corr  uint64
	fence bool
	over  bool
}

func (e *simEnd) send(h wire.Header, body []byte) {
	e.link.send(peerOut, wire.AppendFrame(nil, h, body))
}

func (e *simEnd) request(d doc) uint64 {
	e.corr++
	e.send(wire.Header{Type: wire.Request, Corr: e.corr}, wire.MustMarshal(d))
	return e.corr
}

func (e *simEnd) goodbye(at leg) {
	e.send(wire.Header{Type: wire.Goodbye, Channel: at.channel, Epoch: at.epoch}, nil)
}

func (e *simEnd) ended() { e.over = true }

// simClient is an opener.
type simClient struct {
	simEnd
	as     string            // the module id that its opens claim, "" for none
	fickle bool              // it starts over all the time
	opens  map[uint64]string // tag by corr
	plain  []uint64          // other requests, in order
	scope  uint64            // a scope call that it may not make
	given  map[leg]*simUse   // pairs that it was given since the fence
	pong   uint64
	lapsed map[uint64]bool // opens from before a Goodbye on channel 0

	guessed map[leg]bool // pairs that it said Goodbye to before it had them
}

// simUse is a route as its opener uses it.
type simUse struct {
	tag    string
	calls  []uint64 // unanswered
	reason string   // of the push that announced its end
	left   bool     // the opener said Goodbye
	closed bool     // it was told Goodbye
}

func (s *sim) client() {
	c := &simClient{opens: map[uint64]string{}, given: map[leg]*simUse{}, lapsed: map[uint64]bool{}, guessed: map[leg]bool{}}
	c.sim, c.fickle = s, s.chance(25)
	if s.chance(30) {
		c.as = "runner"
	}
	c.link = s.connect(func(*simLink) simPeer { return c })
}

func (c *simClient) name() string { return fmt.Sprintf("client %d", c.link.id) }

// act opens, calls, closes or leaves.
func (c *simClient) act() {
	s := c.sim
	if c.over || c.link.pipes[peerOut].shut {
		return
	}
	n := s.rng.IntN(100)
	if c.fickle && len(c.opens) > 0 && s.chance(20) {
		n = 95
	}
	switch {
	case n < 40:
		c.open()
	case n < 75:
		if at, u := c.anyUse(); u != nil {
			c.call(at, u)
		}
	case n < 85:
		if at, u := c.anyUse(); u != nil {
			u.left = true
			c.goodbye(at)
		}
	case n < 92:
		c.plain = append(c.plain, c.request(doc{"op": pick(s, []string{wire.OpServerDescribe, wire.OpCatalogList, "supervisor.list"})}))
	case n < 94 && c.scope == 0:
		c.scope = c.request(doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []doc{}})
	case n < 96 && !c.fence:
		s.note("%s says Goodbye on channel 0", c.name())
		c.goodbye(leg{})
		if len(c.opens) > 0 && s.chance(50) { // their answers come late
			s.held[0] = simHeld{c.link.id, routerOut, s.steps + 100}
		}
		for corr := range c.opens {
			c.lapsed[corr] = true
		}
		clear(c.opens)
		clear(c.given)
		clear(c.guessed)
		c.fence = true
		c.corr++
		c.pong = c.corr
		c.send(wire.Header{Type: wire.Ping, Corr: c.pong}, nil)
		for range s.rng.IntN(3) {
			c.open()
		}
	case n < 98:
		// A Goodbye to a pair that it may be given soon, or never.
		at := leg{uint16(1 + s.rng.IntN(4)), uint32(1 + s.rng.IntN(2))}
		if u := c.given[at]; u != nil {
			u.left = true
		}
		c.guessed[at] = true
		c.goodbye(at)
	}
}

// anyUse is any route that is live as far as the client knows.
func (c *simClient) anyUse() (leg, *simUse) {
	var live []leg
	for at, u := range c.given {
		if !u.left && !u.closed {
			live = append(live, at)
		}
	}
	if len(live) == 0 || c.fence {
		return leg{}, nil
	}
	slices.SortFunc(live, func(a, b leg) int { return int(a.channel) - int(b.channel) })
	at := pick(c.sim, live)
	return at, c.given[at]
}

func (c *simClient) call(at leg, u *simUse) {
	c.corr++
	u.calls = append(u.calls, c.corr)
	c.send(wire.Header{Type: wire.Request, Channel: at.channel, Epoch: at.epoch, Corr: c.corr}, payload(c.sim, u.tag))
}

// payload is a body that says whose it is, as long as it says it is.
func payload(s *sim, tag string) []byte {
	return []byte(tag + "|" + strings.Repeat(".", s.rng.IntN(200)))
}

func tagOf(body []byte) string {
	tag, _, _ := strings.Cut(string(body), "|")
	return tag
}

func (c *simClient) open() {
	s := c.sim
	if len(c.opens) >= simOpens+1 {
		return
	}
	tag := fmt.Sprintf("t%d.%d", c.link.id, c.corr+1)
	d := doc{"op": wire.OpRouteOpen,
		"target":   doc{"kind": "tool_provider", "module_id": pick(s, []string{"tool", "tool", "slow", "none"})},
		"identity": doc{"project_root": "/p", "harness": "h", "session": tag}}
	if c.as != "" {
		d["consumer_identity"] = doc{"module_id": c.as, "launch_nonce": "n1"}
	}
	if s.chance(20) {
		d["consumer_capabilities"] = []string{"x/v1"}
	}
	if s.chance(80) {
		o := pick(s, s.owners)
		ref := simRef{o.id, pick(s, simRefs), 0}
		ref.epoch = max(1, o.epochs[ref.ref])
		if s.chance(15) {
			ref.epoch = max(1, ref.epoch-1)
		} else if s.chance(8) {
			ref.epoch++
		}
		sel := doc{"owner": doc{"kind": "reserved", "module_id": ref.owner}, "ref": ref.ref, "scope_epoch": ref.epoch}
		if s.chance(20) {
			sel["hold_presence"] = true
		}
		d["scope"] = sel
		s.refs[tag] = ref
	} else if s.chance(20) {
		d["scope"] = nil
	}
	c.opens[c.request(d)] = tag
}

func (c *simClient) obey() {}

func (c *simClient) receive(b []byte) {
	c.buf = append(c.buf, b...)
	c.sim.frames(c.name(), &c.buf, c.take)
}

func (c *simClient) take(f wire.Frame) {
	if f.Channel != 0 {
		c.routed(f)
		return
	}
	switch f.Type {
	case wire.Pong:
		if f.Corr == c.pong {
			c.fence = false
		}
	case wire.Push:
		c.told(f)
	case wire.Response, wire.Error:
		c.answered(f)
	default:
		c.sim.fail("%s got a %s on channel 0", c.name(), f.Type)
	}
}

// answered takes an answer on channel 0: each request has one.
func (c *simClient) answered(f wire.Frame) {
	tag, open := c.opens[f.Corr]
	switch {
	case open:
		delete(c.opens, f.Corr)
		if f.Type == wire.Response {
			c.granted(f, tag)
		}
	case c.lapsed[f.Corr]:
		delete(c.lapsed, f.Corr)
	case f.Corr == c.scope:
		c.scope = 0
		if f.Type != wire.Error {
			c.sim.fail("%s made a scope call", c.name())
		}
	case len(c.plain) > 0 && c.plain[0] == f.Corr:
		c.plain = c.plain[1:]
	default:
		c.sim.fail("%s got an answer to %d out of order or twice; plain %v", c.name(), f.Corr, c.plain)
	}
}

func (c *simClient) granted(f wire.Frame, tag string) {
	at, ok := routeOf(f.Body)
	if !ok {
		c.sim.fail("%s: no route in %s", c.name(), f.Body)
		return
	}
	if u := c.given[at]; u != nil {
		c.sim.fail("%s is given %v twice", c.name(), at)
	}
	u := &simUse{tag: tag}
	c.given[at] = u
	if c.guessed[at] {
		u.left = true
		c.goodbye(at)
	}
}

// told takes a push: each of its channels has a route, and no reason yet.
func (c *simClient) told(f wire.Frame) {
	var b wire.RouteClosed
	if err := json.Unmarshal(f.Body, &b); err != nil {
		c.sim.fail("%s: a push that is none: %v", c.name(), err)
		return
	}
	if c.fence {
		return
	}
	for _, ch := range b.Channels {
		found := false
		for at, u := range c.given {
			if at.channel != ch || u.closed {
				continue
			}
			found = true
			if u.reason != "" {
				c.sim.fail("%s: %v ends for %s and for %s", c.name(), at, u.reason, b.Reason)
			}
			u.reason = b.Reason
		}
		if !found {
			c.sim.fail("%s: channel %d ends, which is not open to it", c.name(), ch)
		}
	}
}

// routed takes a frame of a route that the client was given.
func (c *simClient) routed(f wire.Frame) {
	if c.fence {
		return
	}
	at := leg{f.Channel, f.Epoch}
	u := c.given[at]
	switch {
	case u == nil:
		c.sim.fail("%s got a %s on %v, which it was never given", c.name(), f.Type, at)
		return
	case u.closed && !u.left && u.reason != "":
		c.sim.fail("%s got a %s on %v, which was drained", c.name(), f.Type, at)
		return
	case f.Type == wire.Goodbye:
		u.closed, u.calls = true, nil
		return
	case u.closed || u.left:
		return
	}
	if f.Type == wire.Error { // it went before we were told
		return
	}
	if tag := tagOf(f.Body); tag != u.tag {
		c.sim.fail("%s got a frame of %s on %v of %s", c.name(), tag, at, u.tag)
	}
	if f.Type != wire.Response {
		return
	}
	if len(u.calls) == 0 || u.calls[0] != f.Corr {
		c.sim.fail("%s got an answer to %d on %v, and waits for %v", c.name(), f.Corr, at, u.calls)
		return
	}
	u.calls = u.calls[1:]
}
