package proxy

import (
	"fmt"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// ConnID names one accepted connection. It is never reused in a process.
type ConnID = uint64

// leg is one end of a route: a slot and its binding, in one connection's space.
type leg struct {
	channel uint16
	epoch   uint32
}

// role is what the router takes the connection for.
type role uint8

const (
	client     role = iota + 1 // no registration: it may open routes
	helloSent                  // a Hello is with the router; control frames behind it wait
	registered                 // a module
)

// Session is one downstream connection and its own upstream one, as a pure
// state machine. Its methods are called one at a time, by whoever drives it.
//
// Its state is small and explicit: the registration, the opens and binds under
// way, the scoped routes, the drained pairs, and at most one partial frame each
// way.
type Session struct {
	id    ConnID
	world *World

	lanes  [2]lane
	outs   [2]outbox
	ended  bool
	reason string // why it ended

	role         role
	registration uint32 // counts Hellos and channel-0 Goodbyes; every key of ours carries it

	// As a client.
	requests map[uint64]request            // unanswered channel-0 requests by corr
	routes   map[leg]liveRoute             // scoped live routes in the client's space
	legs     map[table.RouteID]leg         // the same, by route
	early    map[table.RouteID]table.Drain // drains that came before the opener's answer
	parted   map[leg]bool                  // pairs the client said Goodbye to before they were answered
	crossed  map[uint64]bool               // by corr, the opens that a Goodbye on channel 0 met; true: marked
	marked   int                           // marked opens among requests
	turn     *turn                         // that the parked open waits for or has

	// As a module.
	module    module
	dismissed bool             // the router has said Goodbye on channel 0: it may register anew
	binds     map[uint64]*bind // scoped binds the module has not answered, by corr
	serving   map[leg]table.RouteID
	subs      []*subscription
	behind    bool // a subscription has more than was written
	unsent    int  // bytes to the peer that its driver still has

	units  int  // that the peer has; below zero: owes
	most   int  // it can have, as it was last given
	size   int  // of the frame being handled
	called bool // calls were relayed

	drained [2]map[uint16]uint32 // by direction of travel: per slot, the highest epoch that is dead
}

// liveRoute is a committed scoped route of an opener.
type liveRoute struct {
	id     table.RouteID
	module string
	scope  table.ScopeID
}

// request is what is remembered of an unanswered channel-0 request.
type request struct {
	kind requestKind
	open *open // for a marked open
}

type requestKind uint8

const (
	plainRequest requestKind = iota + 1
	openRequest
	describeRequest
	helloRequest
	updateRequest
	catalogRequest
)

// newSession makes the machine for a connection that has authenticated on both
// sides.
func newSession(id ConnID, w *World) *Session {
	s := &Session{
		id: id, world: w,
		units:    requestUnits,
		most:     requestUnits,
		role:     client,
		requests: make(map[uint64]request),
	}
	s.lanes[toPeer].dir = toPeer
	w.Table.Join(s.peer())
	return s
}

// peer is the table's name for the current registration.
func (s *Session) peer() table.Peer { return table.Peer{Conn: s.id, Registration: s.registration} }

// FromPeer takes bytes that the downstream peer sent. They may be reused once
// the driver has taken what the session wrote.
func (s *Session) FromPeer(b []byte) { s.feed(&s.lanes[toRouter], b) }

// FromRouter takes bytes that the router sent.
func (s *Session) FromRouter(b []byte) { s.feed(&s.lanes[toPeer], b) }

// End releases everything the connection held: its routes, binds, reservations
// and presence, and a module's authority. It is idempotent.
func (s *Session) End(reason string) {
	if s.ended && s.reason != "" {
		return
	}
	s.ended, s.reason = true, reason
	s.clear()
	s.world.Table.Leave(s.peer())
}

// Ended reports whether the driver must close both connections.
func (s *Session) Ended() bool { return s.ended }

// Called reports whether calls were relayed since it was last asked.
func (s *Session) Called() bool {
	called := s.called
	s.called = false
	return called
}

// Full reports whether the driver must stop reading from one side until an
// answer resumes what is parked there.
func (s *Session) Full(d direction) bool { return s.lanes[d].full() }

// Stuck reports whether a Goodbye of ours waits for a peer that stopped in the
// middle of a frame. The driver cuts the pair when it lasts.
func (s *Session) Stuck() bool { return s.outs[toPeer].stuck || s.outs[toRouter].stuck }

// maxQueued is how many unsolicited bytes may wait for one connection before it
// is closed.
const maxQueued = 4 << 20

func (s *Session) out(d direction) *outbox { return &s.outs[d] }

// write sends a frame one way, at the next frame boundary.
func (s *Session) write(d direction, frame []byte) {
	s.outs[d].inject(frame, s.lanes[d].boundary(), false)
}

// writeGoodbye closes a pair one way.
func (s *Session) writeGoodbye(d direction, l leg) {
	s.outs[d].inject(wire.AppendGoodbye(nil, l.channel, l.epoch), s.lanes[d].boundary(), true)
}

// refuse answers a request of the peer's.
func (s *Session) refuse(d direction, corr uint64, code, message string) {
	if d == toPeer {
		s.units -= requestUnits + s.size/refusedUnit
	}
	s.write(d, wire.AppendError(nil, wire.ControlChannel, 0, corr, wire.ErrorBody{Code: code, Message: message}))
}

// malformed ends the session over a header that no reader can get past: the
// frames behind it can't be found.
func (s *Session) malformed(l *lane, err error) {
	s.End(fmt.Sprintf("malformed frame %s: %v", l.dir, err))
}

// cut ends the session by our own act; the driver closes both connections.
func (s *Session) cut(reason string) {
	if s.role == registered && !s.ended {
		s.world.launches.Severed(s.id)
	}
	s.End(reason)
}

func (d direction) String() string {
	if d == toRouter {
		return "from the peer"
	}
	return "from the router"
}

// judge says the fate of a frame from its header. It never writes in the frame's
// own direction, so that what the lane has not yet handed over stays in front.
func (s *Session) judge(l *lane, h wire.Header) fate {
	if l.waits(h) {
		return hold
	}
	if s.units <= 0 && s.pays(l, h) {
		return hold
	}
	var fate fate
	if h.Channel != wire.ControlChannel {
		fate = s.judgeData(l, h)
	} else {
		fate = s.judgeControl(l, h)
	}
	if fate != hold { // or it pays when it is whole
		s.pay(l, h)
	}
	return fate
}

// handle takes a whole frame in its lane's order.
func (s *Session) handle(l *lane, f held) {
	s.size = len(f.frame)
	var fate fate
	if f.Channel != wire.ControlChannel {
		fate = s.judgeData(l, f.Header)
	} else {
		fate = s.judgeControl(l, f.Header)
	}
	switch fate {
	case pass:
		s.write(l.dir, f.frame)
	case hold:
		s.control(l, f)
	}
}

// judgeData drops frames of drained pairs and follows Goodbyes.
func (s *Session) judgeData(l *lane, h wire.Header) fate {
	if dead, ok := s.drained[l.dir][h.Channel]; ok && h.Epoch <= dead {
		return drop
	}
	if h.Type == wire.Goodbye {
		s.parting(l, leg{h.Channel, h.Epoch})
	} else {
		s.called = true
	}
	return pass
}

// parting follows a Goodbye on a route: it releases that route's index entry
// and usage; presence stays.
func (s *Session) parting(l *lane, at leg) {
	if r, ok := s.routes[at]; ok {
		s.forget(at)
		s.world.Table.Release(r.id)
		return
	}
	if route, ok := s.serving[at]; ok {
		delete(s.serving, at)
		s.world.Table.Release(route)
		if l.dir == toPeer {
			// The router may say Goodbye to a module for a bind that was answered
			// quickly, and hold the route live for its opener all the same. What
			// leaves the index must be closed: say it back, as the module would.
			s.writeGoodbye(toRouter, at)
		}
		return
	}
	switch l.dir {
	case toPeer: // the router gives up a bind that its module has not answered
		for corr, b := range s.binds {
			if b.leg == at { // its answer is not awaited: the module may never give it
				s.world.Table.Release(b.route)
				delete(s.binds, corr)
			}
		}
	case toRouter: // the client may mean a pair whose answer is on its way
		if s.role == client && s.marked > 0 {
			if s.parted == nil {
				s.parted = make(map[leg]bool)
			}
			if len(s.parted) < maxParted {
				s.parted[at] = true
			}
		}
	}
}

// maxParted bounds the guesses of a client that says Goodbye to pairs it has
// never been given. The router allows eight opens under way.
const maxParted = 64

func (s *Session) forget(at leg) {
	delete(s.legs, s.routes[at].id)
	delete(s.routes, at)
}

// bury makes every later frame of a pair, and of the slot's earlier bindings,
// vanish both ways.
func (s *Session) bury(at leg, ways ...direction) {
	for _, d := range ways {
		if s.drained[d] == nil {
			s.drained[d] = make(map[uint16]uint32)
		}
		s.drained[d][at.channel] = max(s.drained[d][at.channel], at.epoch)
	}
}

// clear forgets all that hangs on the current registration and gives back what
// it reserved.
func (s *Session) clear() {
	for corr, r := range s.requests {
		if r.open != nil {
			s.giveUp(r.open)
			delete(s.requests, corr)
		}
	}
	for _, r := range s.routes {
		s.world.Table.Release(r.id)
	}
	for _, route := range s.serving {
		s.world.Table.Release(route)
	}
	for _, b := range s.binds {
		s.world.Table.Release(b.route)
	}
	s.routes, s.legs, s.early, s.parted, s.marked = nil, nil, nil, nil, 0
	s.binds, s.serving, s.drained = nil, nil, [2]map[uint16]uint32{}
	for len(s.subs) > 0 {
		s.endSubscription(s.subs[0].corr)
	}
	s.forfeit()
	if s.role == registered {
		s.world.launches.Unregistered(s.id)
	}
	s.module = module{}
}

// startOver follows a Goodbye on channel 0: the registration ends, the
// connection stays, and (channel, epoch) begin again at (1, 1).
//
// A module that the router dismissed, as it does with the older launch of a
// swap, is a module still: it may read scopes, and its syncs are refused for
// the launch it belongs to.
func (s *Session) startOver(by direction) {
	was := s.module
	old := s.peer()
	if by == toRouter {
		s.cross()
	}
	s.clear()
	s.world.Table.Leave(old)
	s.registration++
	s.world.Table.Join(s.peer())
	if by == toPeer && s.role == registered {
		s.module, s.dismissed = was, true
		return
	}
	s.role, s.dismissed = client, false
}

// cross keeps in mind the opens that a client's Goodbye on channel 0 ends before
// they were answered: their answers may be under way.
func (s *Session) cross() {
	for corr, r := range s.requests {
		if r.kind != openRequest {
			continue
		}
		if s.crossed == nil || len(s.crossed) >= maxParted {
			s.crossed = make(map[uint64]bool)
		}
		s.crossed[corr] = r.open != nil
		if r.open == nil {
			delete(s.requests, corr)
		}
	}
}
