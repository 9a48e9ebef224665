package routertest

import (
	"maps"
	"slices"
	"time"

	"scopeward/proxy/wire"
)

// route is one live binding of a client's channel to a module's.
type route struct {
	client    *conn
	channel   uint16
	epoch     uint32
	endpoint  *endpoint
	mChannel  uint16
	mEpoch    uint32
	principal principal
	root      string
	bound     time.Time
	status    *string // the module's last route.status

	inFlight map[uint64]bool // requests by corr; true for a subscription
	closed   bool
}

func newRoute(p *pending) *route {
	return &route{
		client: p.client, channel: p.channel, epoch: p.epoch,
		endpoint: p.endpoint, mChannel: p.mChannel, mEpoch: p.mEpoch,
		principal: p.principal, root: p.root, bound: time.Now(),
		inFlight: map[uint64]bool{},
	}
}

// drop takes the route out of both tables. It is false when it was out already.
func (rt *route) drop() bool {
	if rt.closed {
		return false
	}
	rt.closed = true
	delete(rt.client.routes, rt.channel)
	delete(rt.endpoint.routes, rt.mChannel)
	rt.client.r.change.Broadcast()
	return true
}

func (rt *route) tellClient() {
	rt.client.out.push(wire.AppendGoodbye(nil, rt.channel, rt.epoch))
}

func (rt *route) tellModule() {
	rt.endpoint.conn.out.push(wire.AppendGoodbye(nil, rt.mChannel, rt.mEpoch))
}

// clientData takes a client's frame on a route. It returns where the frame goes,
// which may have to wait for room there, or the replies to it.
func (r *Router) clientData(c *conn, f wire.Frame) (to *conn, frame []byte, replies [][]byte) {
	rt := c.routes[f.Channel]
	if rt == nil || rt.epoch != f.Epoch {
		if f.Type == wire.Request {
			return nil, nil, noRoute(f, rt != nil || c.reservedAtAnother(f))
		}
		return nil, nil, nil
	}
	if f.Type == wire.Goodbye {
		r.releaseByClient(rt)
		return nil, nil, nil
	}
	if f.Type == wire.Request {
		for !rt.closed && !r.closed && rt.endpoint.draining == "" && len(rt.inFlight) >= RequestWindow {
			r.change.Wait()
		}
		switch {
		case rt.endpoint.draining != "":
			return nil, nil, refuse(f, "module_reloading", "the module of this route is reloading")
		case rt.closed:
			return nil, nil, refuse(f, "backend_error", "the route has closed")
		}
		rt.inFlight[f.Corr] = f.Flags&wire.FlagSubscription != 0
	}
	f.Channel, f.Epoch = rt.mChannel, rt.mEpoch
	return rt.endpoint.conn, wire.AppendFrame(nil, f.Header, f.Body), nil
}

func noRoute(f wire.Frame, stale bool) [][]byte {
	if stale {
		return refuse(f, "stale_route_epoch", "stale route epoch")
	}
	return refuse(f, "unknown_channel", "unknown channel")
}

func (c *conn) reservedAtAnother(f wire.Frame) bool {
	for p := range c.opens {
		if p.channel == f.Channel {
			return p.epoch != f.Epoch
		}
	}
	return false
}

func (r *Router) releaseByClient(rt *route) {
	if rt.drop() {
		rt.tellModule()
		r.checkQuiet(rt.endpoint)
	}
}

// moduleData takes a module's frame on a route.
func (r *Router) moduleData(c *conn, f wire.Frame) [][]byte {
	ep := c.endpoint
	rt := ep.routes[f.Channel]
	if rt == nil || rt.mEpoch != f.Epoch {
		if f.Type == wire.Request {
			p := ep.reserved[f.Channel]
			return noRoute(f, rt != nil || p != nil && p.mEpoch != f.Epoch)
		}
		r.orphan(c, f)
		return nil
	}
	switch f.Type {
	case wire.Goodbye:
		if rt.drop() {
			rt.tellClient()
			r.checkQuiet(ep)
		}
		return nil
	case wire.Response, wire.Error, wire.StreamEnd:
		delete(rt.inFlight, f.Corr)
		r.change.Broadcast()
		defer r.checkQuiet(ep)
	}
	f.Channel, f.Epoch = rt.channel, rt.epoch
	if !rt.client.out.offer(wire.AppendFrame(nil, f.Header, f.Body)) {
		// The queue is every route's of this client: it has stopped reading.
		rt.client.cut()
	}
	return nil
}

// orphan tells a module, once in a while, that a route it goes on with is gone.
func (r *Router) orphan(c *conn, f wire.Frame) {
	if f.Type == wire.Goodbye {
		return
	}
	now := time.Now()
	if last, ok := c.orphanBye[f.Channel]; ok && now.Sub(last) < orphanInterval {
		return
	}
	c.orphanBye[f.Channel] = now
	c.out.push(wire.AppendGoodbye(nil, f.Channel, f.Epoch))
}

// modulePush takes a module's push on channel 0. Unknown ones are ignored.
func (r *Router) modulePush(c *conn, f wire.Frame) [][]byte {
	op, err := readTag(f.Body, "op")
	if err != nil || op != wire.OpRouteStatus {
		return nil
	}
	s, err := readShape(f.Body, "op", "route_channel", "route_epoch", "status")
	if err != nil {
		return malformed(f, err)
	}
	var channel uint16
	var epoch uint32
	if err := s.into("route_channel", &channel); err != nil {
		return malformed(f, err)
	}
	if err := s.into("route_epoch", &epoch); err != nil {
		return malformed(f, err)
	}
	status, err := s.text("status")
	if err != nil {
		return malformed(f, err)
	}
	if rt := c.endpoint.routes[channel]; rt != nil && rt.mEpoch == epoch {
		rt.status = &status
	}
	return nil
}

func (r *Router) routePoll(c *conn, f wire.Frame) ([][]byte, error) {
	s, err := readShape(f.Body, "op", "route_channel", "route_epoch", "kind")
	if err != nil {
		return nil, err
	}
	reply := struct {
		Op           string  `json:"op"`
		RouteChannel uint16  `json:"route_channel"`
		RouteEpoch   uint32  `json:"route_epoch"`
		Status       *string `json:"status"`
		Live         *bool   `json:"live"`
	}{Op: wire.OpRoutePoll}
	if err := s.into("route_channel", &reply.RouteChannel); err != nil {
		return nil, err
	}
	if err := s.into("route_epoch", &reply.RouteEpoch); err != nil {
		return nil, err
	}
	kind, err := s.text("kind")
	if err != nil {
		return nil, err
	}
	rt := c.routes[reply.RouteChannel]
	bound := rt != nil && rt.epoch == reply.RouteEpoch
	if kind == "liveness" {
		live := bound && r.processLive(rt.endpoint.id)
		reply.Live = &live
	} else if bound {
		reply.Status = rt.status
	}
	return answer(f, reply), nil
}

// controlGoodbye ends c's registration or its routes. The connection goes on,
// and its numbers begin again at one.
func (r *Router) controlGoodbye(c *conn) {
	r.release(c)
	c.slots = newSlots()
	c.orphanBye = map[uint16]time.Time{}
}

// connectionEnded forgets c. The clients of a module's routes are told that it
// crashed, then that each route is gone.
func (r *Router) connectionEnded(c *conn) {
	c.gone = true
	delete(r.conns, c)
	var closed []byte
	var clients []*conn
	if ep := c.endpoint; ep != nil {
		clients = ep.clients()
		closed = push(routeClosed{
			Op: wire.OpRouteClosed, ModuleID: ep.id, Reason: "crash",
			Abandoned: len(ep.pending), Terminal: r.wontRecover(ep.id),
		})
	}
	for _, client := range clients {
		client.out.push(closed)
	}
	r.release(c)
	r.feed.forget(c)
}

// release ends what c holds: a module's registrations, binds and routes, or a
// client's opens and routes. The other side of each is told.
func (r *Router) release(c *conn) {
	for _, id := range slices.Sorted(maps.Keys(r.registry)) {
		if r.registry[id].conn == c {
			delete(r.registry, id)
			r.generation++
		}
	}
	if ep := c.endpoint; ep != nil {
		for _, rt := range sorted(ep.routes) {
			if rt.drop() {
				rt.tellClient()
			}
		}
		r.removeEndpoint(ep)
		c.endpoint = nil
		r.registrationReleased(c, ep.id)
	}
	for _, rt := range sorted(c.routes) {
		r.releaseByClient(rt)
	}
	for p := range c.opens {
		if r.settle(p) {
			p.abandon()
		}
	}
}

// removeEndpoint fails the binds that wait for ep and forgets its routes.
func (r *Router) removeEndpoint(ep *endpoint) {
	for _, corr := range slices.Sorted(maps.Keys(ep.pending)) {
		r.fail(ep.pending[corr], *refusal(wire.CodeTargetUnavailable, "module %q closed its connection during the bind", ep.id))
	}
	for _, rt := range sorted(ep.routes) {
		rt.drop()
	}
	if r.endpoints[ep.id] == ep {
		delete(r.endpoints, ep.id)
	}
	r.checkQuiet(ep)
}

// clients are the connections with a route to ep, each once, oldest first.
func (ep *endpoint) clients() []*conn {
	seen := map[*conn]bool{}
	for _, rt := range ep.routes {
		seen[rt.client] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b *conn) int { return int(a.id) - int(b.id) })
}

func sorted(routes map[uint16]*route) []*route {
	var out []*route
	for _, channel := range slices.Sorted(maps.Keys(routes)) {
		out = append(out, routes[channel])
	}
	return out
}
