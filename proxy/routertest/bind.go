package routertest

import (
	"time"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// pending is an open whose bind was relayed and not answered.
type pending struct {
	client    *conn
	corr      uint64 // of the open
	channel   uint16 // reserved for the client
	epoch     uint32
	endpoint  *endpoint
	bindCorr  uint64
	mChannel  uint16 // reserved for the module
	mEpoch    uint32
	principal principal
	root      string
	timer     *time.Timer
}

type bindBody struct {
	Op           string    `json:"op"`
	RouteChannel uint16    `json:"route_channel"`
	Epoch        uint32    `json:"epoch"`
	Target       target    `json:"target"`
	Identity     identity  `json:"identity"`
	Principal    principal `json:"principal"`
	Capabilities *[]string `json:"consumer_capabilities,omitzero"`
}

type openReply struct {
	Op           string `json:"op"`
	RouteChannel uint16 `json:"route_channel"`
	RouteEpoch   uint32 `json:"route_epoch"`
}

// relayBind reserves a pair of channels and sends the module its bind.
func (r *Router) relayBind(c *conn, f wire.Frame, o openRequest, who principal) {
	ep := r.endpoints[o.target.ModuleID]
	channel, ok := c.slots.free(func(n uint16) bool { return c.routes[n] != nil || c.reserves(n) })
	mChannel, mok := ep.slots.free(func(n uint16) bool { return ep.routes[n] != nil || ep.reserved[n] != nil })
	if !ok || !mok {
		c.out.push(refuse(f, "route_limit", "no channel is free")[0])
		return
	}
	p := &pending{
		client: c, corr: f.Corr, channel: channel, epoch: c.slots.use(channel),
		endpoint: ep, bindCorr: ep.nextCorr, mChannel: mChannel, mEpoch: ep.slots.use(mChannel),
		principal: who, root: o.identity.ProjectRoot,
	}
	ep.nextCorr++
	ep.pending[p.bindCorr] = p
	ep.reserved[mChannel] = p
	c.opens[p] = struct{}{}
	r.targetBinds[ep.id]++
	body := bindBody{
		Op: wire.OpRouteBind, RouteChannel: mChannel, Epoch: p.mEpoch,
		Target: o.target, Identity: o.identity, Principal: who,
	}
	if o.hasCaps {
		body.Capabilities = &o.caps
	}
	ep.conn.out.push(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: p.bindCorr}, wire.MustMarshal(body)))
	p.timer = r.later(r.bindTimeout(ep.id), func() { r.bindTimedOut(p) })
}

func (r *Router) bindTimeout(id string) time.Duration {
	if m := r.roster[id]; m != nil && m.cfg.BindTimeout > 0 {
		return m.cfg.BindTimeout
	}
	return r.cfg.BindTimeout
}

func (c *conn) reserves(channel uint16) bool {
	for p := range c.opens {
		if p.channel == channel {
			return true
		}
	}
	return false
}

// settle forgets p. It is false when p was settled before.
func (r *Router) settle(p *pending) bool {
	if p.endpoint.pending[p.bindCorr] != p {
		return false
	}
	p.timer.Stop()
	delete(p.endpoint.pending, p.bindCorr)
	delete(p.endpoint.reserved, p.mChannel)
	delete(p.client.opens, p)
	if r.targetBinds[p.endpoint.id]--; r.targetBinds[p.endpoint.id] == 0 {
		delete(r.targetBinds, p.endpoint.id)
	}
	if b := r.breakers[p.endpoint.id]; b != nil {
		b.probing = false
	}
	return true
}

// fail settles p with an Error for its opener.
func (r *Router) fail(p *pending, body wire.ErrorBody) {
	if r.settle(p) {
		p.client.out.push(wire.AppendError(nil, wire.ControlChannel, 0, p.corr, body))
	}
}

// abandon tells the module that its binding came to nothing.
func (p *pending) abandon() {
	p.endpoint.conn.out.push(wire.AppendGoodbye(nil, p.mChannel, p.mEpoch))
}

func (r *Router) bindTimedOut(p *pending) {
	id := p.endpoint.id
	if p.endpoint.pending[p.bindCorr] != p {
		return
	}
	b := r.breakers[id]
	if b == nil {
		b = &breaker{}
		r.breakers[id] = b
	}
	b.timedOut()
	r.fail(p, *refusal("module_timeout", "module_id %q did not answer its bind in time", id))
	p.abandon()
}

// bindAnswer takes a module's Response or Error on channel 0.
func (r *Router) bindAnswer(c *conn, f wire.Frame) [][]byte {
	p := c.endpoint.pending[f.Corr]
	if f.Type == wire.Error {
		body, err := readErrorBody(f.Body)
		if err != nil {
			return r.badAnswer(p, f, err)
		}
		if p != nil {
			r.fail(p, body)
		}
		return nil
	}
	op, err := readTag(f.Body, "op")
	if err != nil {
		return r.badAnswer(p, f, err)
	}
	if op != wire.OpRouteBind || p == nil {
		// Another op's answer, or a late one: the opener goes on waiting.
		return nil
	}
	r.commit(p)
	return nil
}

// badAnswer tells both sides of an answer that can't be read.
func (r *Router) badAnswer(p *pending, f wire.Frame, err error) [][]byte {
	if p != nil {
		r.fail(p, *refusal(wire.CodeTargetUnavailable, "malformed route.bind answer: %v", err))
	}
	return malformed(f, err)
}

// commit makes the route of an accepted bind, before any later frame of the
// module, and answers the open before any frame of the route.
func (r *Router) commit(p *pending) {
	if !r.settle(p) {
		return
	}
	ep := p.endpoint
	delete(r.breakers, ep.id)
	rt := newRoute(p)
	p.client.routes[p.channel] = rt
	ep.routes[p.mChannel] = rt
	p.client.out.push(wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: p.corr},
		wire.MustMarshal(openReply{wire.OpRouteOpen, p.channel, p.epoch})))
}

// readErrorBody reads what an Error keeps on its way to the opener: code,
// message and detail. Other members are dropped.
func readErrorBody(raw jsontext.Value) (wire.ErrorBody, error) {
	s, err := readShape(raw, "code", "message", "detail")
	if err != nil {
		return wire.ErrorBody{}, err
	}
	var b wire.ErrorBody
	if b.Code, err = s.text("code"); err != nil {
		return b, err
	}
	if b.Message, err = s.text("message"); err != nil {
		return b, err
	}
	if !s.absent("detail") {
		b.Detail = compact(s["detail"])
	}
	return b, nil
}

// breaker counts binds of one module that nobody answered. Only an acceptance or
// another registration clears it; a rejection counts for nothing.
type breaker struct {
	timeouts int
	openTill time.Time
	probing  bool // one bind is let through to see
}

// admit reports whether a bind may be relayed.
func (b *breaker) admit() bool {
	if b.timeouts < BreakerThreshold {
		return true
	}
	if b.probing || time.Now().Before(b.openTill) {
		return false
	}
	b.probing = true
	return true
}

func (b *breaker) timedOut() {
	if b.timeouts++; b.timeouts >= BreakerThreshold {
		b.openTill = time.Now().Add(BreakerCooldown)
	}
}
