package proxy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/proxy/wire"
)

// simRouter is the existing router as far as opens, binds and routes go, on the
// simulation's one goroutine. It knows nothing of scopes.
type simRouter struct {
	sim     *sim
	conns   []*simConn
	modules map[string]*simConn // by id of the registration
}

// The router's limits, and how many slots a connection's channels come round in.
const (
	simOpens   = 8
	simBinds   = 16
	simSlots   = 24
	simTimeout = 12 * time.Second
)

// simConn is one connection as the router has it.
type simConn struct {
	r      *simRouter
	link   *simLink
	buf    []byte
	module string // of its registration, "" for a client
	gone   bool

	routes map[uint16]*simRoute // by channel of this side
	opens  []*simOpen           // a client's, in flight
	binds  map[uint64]*simOpen  // a module's, unanswered
	corr   uint64
	epochs map[uint16]uint32
	next   uint16
}

// simRoute is a live route, simOpen one that is not yet.
type simRoute struct {
	tag            string
	marked         bool
	client, module *simConn
	near, far      leg // in the client's space and in the module's
}

type simOpen struct {
	simRoute
	corr, bind uint64
	late       time.Time
}

func newSimConn(r *simRouter, l *simLink) *simConn {
	c := &simConn{r: r, link: l}
	c.restart()
	r.conns = append(r.conns, c)
	return c
}

// restart begins channels, epochs and corrs anew.
func (c *simConn) restart() {
	c.routes, c.binds, c.opens = map[uint16]*simRoute{}, map[uint64]*simOpen{}, nil
	c.epochs, c.next, c.corr = map[uint16]uint32{}, 0, 0
}

func (c *simConn) slot() leg {
	for {
		c.next = c.next%simSlots + 1
		busy := c.routes[c.next] != nil
		for _, o := range c.opens {
			busy = busy || o.near.channel == c.next
		}
		for _, o := range c.binds {
			busy = busy || o.far.channel == c.next
		}
		if !busy {
			c.epochs[c.next]++
			return leg{c.next, c.epochs[c.next]}
		}
	}
}

func (c *simConn) full() bool {
	return len(c.routes)+len(c.opens)+len(c.binds) >= simSlots-1
}

func (c *simConn) send(h wire.Header, body []byte) {
	if !c.gone {
		c.link.send(routerOut, wire.AppendFrame(nil, h, body))
	}
}

func (c *simConn) goodbye(at leg) {
	c.send(wire.Header{Type: wire.Goodbye, Channel: at.channel, Epoch: at.epoch}, nil)
}

func (c *simConn) refuse(corr uint64, code string) {
	c.send(wire.Header{Type: wire.Error, Corr: corr}, wire.MustMarshal(wire.ErrorBody{Code: code, Message: "the router says so"}))
}

func (c *simConn) receive(b []byte) {
	if c.gone {
		return
	}
	c.buf = append(c.buf, b...)
	c.r.sim.frames(c.name(), &c.buf, c.take)
}

func (c *simConn) name() string { return "router " + string(rune('0'+c.link.id%10)) }

func (c *simConn) take(f wire.Frame) {
	if f.Channel != 0 {
		c.data(f)
		return
	}
	switch f.Type {
	case wire.Ping:
		c.send(wire.Header{Type: wire.Pong, Corr: f.Corr}, nil)
	case wire.Goodbye:
		c.r.release(c)
		c.restart()
	case wire.Hello:
		c.hello(f)
	case wire.Request:
		c.request(f)
	case wire.Response, wire.Error:
		if o := c.binds[f.Corr]; o != nil {
			c.r.answered(o, f)
		}
	case wire.Cancel:
		c.refuse(f.Corr, wire.CodeUnknownSubscription)
	}
}

func (c *simConn) hello(f wire.Frame) {
	var b struct {
		Manifest struct {
			ModuleID string `json:"module_id"`
		} `json:"manifest"`
	}
	if err := json.Unmarshal(f.Body, &b); err != nil {
		c.r.sim.fail("a Hello that is none: %v", err)
	}
	id := b.Manifest.ModuleID
	if c.module != "" || len(c.routes) > 0 || c.r.modules[id] != nil {
		c.refuse(f.Corr, "duplicate_module_id")
		return
	}
	c.restart()
	c.module = id
	c.r.modules[id] = c
	c.send(wire.Header{Type: wire.HelloAck, Corr: f.Corr}, []byte(`{"negotiated_ver":2,"subc_ops":[],"subc_capabilities":[]}`))
}

// simOpenBody is what the router reads of an open and relays on its bind.
type simOpenBody struct {
	Op       string         `json:"op"`
	Target   jsontext.Value `json:"target,omitzero"`
	Identity jsontext.Value `json:"identity,omitzero"`
	Claim    *struct {
		ModuleID string `json:"module_id"`
	} `json:"consumer_identity,omitzero"`
	Capabilities *[]string      `json:"consumer_capabilities,omitzero"`
	Scope        jsontext.Value `json:"scope,omitzero"`
}

func (c *simConn) request(f wire.Frame) {
	var b simOpenBody
	if err := json.Unmarshal(f.Body, &b); err != nil {
		c.r.sim.fail("a request that is none: %v", err)
		return
	}
	switch {
	case strings.HasPrefix(b.Op, wire.ScopePrefix):
		c.r.sim.fail("%s reached the router", b.Op)
	case c.module != "" && b.Op != wire.OpCatalogUpdate:
		c.refuse(f.Corr, wire.CodeUnsupportedControlFrame)
	case b.Op == wire.OpRouteOpen:
		c.open(f, b)
	default:
		c.send(wire.Header{Type: wire.Response, Corr: f.Corr}, wire.MustMarshal(doc{"op": b.Op, "capabilities": []string{}}))
	}
}

func (c *simConn) open(f wire.Frame, b simOpenBody) {
	var t struct {
		ModuleID string `json:"module_id"`
	}
	var i struct {
		Session string `json:"session"`
	}
	if json.Unmarshal(b.Target, &t) != nil || json.Unmarshal(b.Identity, &i) != nil {
		c.refuse(f.Corr, wire.CodeInvalidControlBody)
		return
	}
	marked := b.Capabilities != nil && slices.ContainsFunc(*b.Capabilities, func(s string) bool { return strings.HasPrefix(s, wire.MarkPrefix) })
	if b.Scope != nil && string(b.Scope) != "null" {
		c.r.sim.fail("a scope reached the router")
	}
	if scoped := (c.r.sim.refs[i.Session] != simRef{}); scoped != marked {
		c.r.sim.fail("open %s: scoped %v, marked %v", i.Session, scoped, marked)
	}
	m := c.r.modules[t.ModuleID]
	switch {
	case len(c.opens) >= simOpens, m == nil, c.full(), m.full(), len(m.binds) >= simBinds:
		c.refuse(f.Corr, wire.CodeTargetUnavailable)
		return
	}
	o := &simOpen{corr: f.Corr, late: time.Now().Add(simTimeout),
		simRoute: simRoute{tag: i.Session, marked: marked, client: c, module: m, near: c.slot(), far: m.slot()}}
	m.corr++
	o.bind = m.corr
	m.binds[o.bind] = o
	c.opens = append(c.opens, o)
	principal := doc{"kind": "direct"}
	if b.Claim != nil {
		principal = doc{"kind": "reserved", "module_id": b.Claim.ModuleID}
	}
	body := doc{"op": wire.OpRouteBind, "route_channel": o.far.channel, "epoch": o.far.epoch,
		"target": b.Target, "identity": b.Identity, "principal": principal}
	if b.Capabilities != nil {
		body["consumer_capabilities"] = *b.Capabilities
	}
	m.send(wire.Header{Type: wire.Request, Corr: o.bind}, wire.MustMarshal(body))
}

// settle takes an open out of the lists. It is false when it was before.
func (r *simRouter) settle(o *simOpen) bool {
	if o.module.binds[o.bind] != o {
		return false
	}
	delete(o.module.binds, o.bind)
	o.client.opens = slices.DeleteFunc(o.client.opens, func(p *simOpen) bool { return p == o })
	return true
}

// answered takes a module's answer to a bind: the route is live before any later
// frame of the module's.
func (r *simRouter) answered(o *simOpen, f wire.Frame) {
	r.settle(o)
	if f.Type == wire.Error {
		o.client.send(wire.Header{Type: wire.Error, Corr: o.corr}, f.Body)
		return
	}
	rt := &o.simRoute
	rt.client.routes[rt.near.channel], rt.module.routes[rt.far.channel] = rt, rt
	rt.client.send(wire.Header{Type: wire.Response, Corr: o.corr},
		wire.MustMarshal(doc{"op": wire.OpRouteOpen, "route_channel": rt.near.channel, "route_epoch": rt.near.epoch}))
}

func (r *simRouter) fail(o *simOpen, code string) {
	if r.settle(o) {
		o.client.refuse(o.corr, code)
	}
}

// expire gives up binds that nobody has answered.
func (r *simRouter) expire() {
	for _, c := range r.conns {
		for _, corr := range slices.Sorted(maps.Keys(c.binds)) {
			if o := c.binds[corr]; time.Now().After(o.late) {
				r.fail(o, "module_timeout")
				c.goodbye(o.far)
			}
		}
	}
}

func (rt *simRoute) drop() {
	delete(rt.client.routes, rt.near.channel)
	delete(rt.module.routes, rt.far.channel)
}

// data relays a frame of a route.
func (c *simConn) data(f wire.Frame) {
	rt := c.routes[f.Channel]
	at, module := leg{f.Channel, f.Epoch}, c.module != ""
	if rt == nil || module && rt.far != at || !module && rt.near != at {
		switch {
		case f.Type == wire.Request && !module:
			c.send(wire.Header{Type: wire.Error, Channel: f.Channel, Epoch: f.Epoch, Corr: f.Corr},
				wire.MustMarshal(wire.ErrorBody{Code: "unknown_channel", Message: "m"}))
		case f.Type != wire.Goodbye && module:
			c.goodbye(at)
		}
		return
	}
	other, to := rt.module, rt.far
	if module {
		other, to = rt.client, rt.near
	}
	if f.Type == wire.Goodbye {
		rt.drop()
		other.goodbye(to)
		return
	}
	h := f.Header
	h.Channel, h.Epoch = to.channel, to.epoch
	other.send(h, f.Body)
}

// release ends what a connection holds and tells the other side of each.
func (r *simRouter) release(c *simConn) {
	for _, ch := range slices.Sorted(maps.Keys(c.routes)) {
		rt := c.routes[ch]
		rt.drop()
		if c.module != "" {
			rt.client.goodbye(rt.near)
		} else {
			rt.module.goodbye(rt.far)
		}
	}
	for _, corr := range slices.Sorted(maps.Keys(c.binds)) {
		r.fail(c.binds[corr], wire.CodeTargetUnavailable)
	}
	for _, o := range slices.Clone(c.opens) {
		r.settle(o)
		o.module.goodbye(o.far)
	}
	if c.module != "" {
		delete(r.modules, c.module)
		c.module = ""
	}
}

// restart ends a module's registration as a supervisor's restart does.
func (r *simRouter) dismiss(c *simConn) {
	for _, corr := range slices.Sorted(maps.Keys(c.binds)) {
		o := c.binds[corr]
		r.fail(o, "module_reloading")
		c.goodbye(o.far)
	}
	r.release(c)
	c.restart()
	c.send(wire.Header{Type: wire.Goodbye}, nil)
}

// ended forgets a connection.
func (r *simRouter) ended(c *simConn) {
	if c.gone {
		return
	}
	if c.module != "" {
		told := map[*simConn]bool{}
		for _, ch := range slices.Sorted(maps.Keys(c.routes)) {
			if to := c.routes[ch].client; !told[to] {
				told[to] = true
				to.send(wire.Header{Type: wire.Push}, wire.MustMarshal(doc{"op": wire.OpRouteClosed, "module_id": c.module, "reason": "crash", "terminal": false}))
			}
		}
	}
	r.release(c)
	c.gone = true
	r.conns = slices.DeleteFunc(r.conns, func(x *simConn) bool { return x == c })
}
