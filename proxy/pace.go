package proxy

import (
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/wire"
)

// What a peer asks for is paced, so that one connection's flood delays nobody
// else's calls: the router does what it is asked in one go, and so do we. A peer's
// control frames cost units. Those that come when its units are used up wait in its
// lane, in their order, and its calls go past them.

// unitsEvery is how often units come.
const unitsEvery = time.Millisecond

// How many come: few while calls are relayed, 250 requests a second, and else more
// than a router can use.
const (
	unitsBesideCalls = 4
	unitsAlone       = 512
)

// Each control frame costs one unit. A request that goes to the router costs as
// much as this, and one for each KiB of it; one that we refuse costs the same, and
// one for each quarter of a KiB: all of it was read for nothing. An owner's call that
// is taken costs its frame and no more: a revocation does not wait for one before.
const (
	requestUnits = 16
	askedUnit    = 1 << 10
	refusedUnit  = 1 << 8
)

// pays reports whether a frame costs anything. Calls don't, nor what a module
// answers: an opener waits for it.
func (s *Session) pays(l *lane, h wire.Header) bool {
	switch {
	case l.dir != toRouter || s.world.pass:
		return false
	case h.Channel != wire.ControlChannel:
		return h.Type == wire.Goodbye
	case h.Type == wire.Response || h.Type == wire.Error:
		return s.role != registered
	}
	return true
}

// pay takes a frame's unit and reports true, or false when there is none: the frame
// has to wait.
func (s *Session) pay(l *lane, h wire.Header) bool {
	if !s.pays(l, h) {
		return true
	}
	if s.units <= 0 {
		return false
	}
	s.units--
	return true
}

// Wants reports whether the driver must give the peer units soon: before it has used
// them all up, so that while nobody calls it never waits for the next.
func (s *Session) Wants() bool { return s.units < s.most/2 }

// Short reports whether frames of the peer's wait for units.
func (s *Session) Short() bool { return s.lanes[toRouter].short }

// Refill gives the peer units. It never has more than a request costs, or than it is
// given at once. What waited goes on.
func (s *Session) Refill(units int) {
	s.most = max(units, requestUnits)
	s.units = min(s.units+units, s.most)
	if l := &s.lanes[toRouter]; l.short && s.units > 0 {
		s.resume(l)
	}
}

// ration is a loop's part of the pacing.
type ration struct {
	calls atomic.Uint64 // reads of this loop that gave calls
	line  []*pair       // who wants units
	spare []*pair       // empty: the memory of the line before
	short bool          // and somebody waits for them
	since time.Time     // when units came
	seen  uint64        // the calls of all loops then
	calm  time.Time     // when this thread may be patient again; zero: it is
	alarm time.Time     // when the others were last told not to be
}

// provide puts a pair in the line for units.
func (l *Loop) provide(p *pair) {
	r := &l.ration
	if !p.session.Wants() || p.sides[0].fd < 0 || p.loop.Load() != l {
		return
	}
	if !p.wants {
		if len(r.line) == 0 {
			r.since, r.seen = time.Now(), l.allCalls()
		}
		p.wants = true
		r.line = append(r.line, p)
	}
	r.short = r.short || p.session.Short()
}

// forgo takes a pair that moves to another loop out of the line.
func (l *Loop) forgo(p *pair) {
	p.wants = false
	r := &l.ration
	r.line = slices.DeleteFunc(r.line, func(o *pair) bool { return o == p })
	r.short = r.short && len(r.line) > 0
}

func (l *Loop) allCalls() (n uint64) {
	for _, o := range l.all {
		n += o.ration.calls.Load()
	}
	return n
}

// runRation gives units to all who are in the line.
func (l *Loop) runRation() {
	r := &l.ration
	if len(r.line) == 0 && r.calm.IsZero() {
		return
	}
	now := time.Now()
	l.relax(now)
	if len(r.line) == 0 || now.Sub(r.since) < unitsEvery {
		return
	}
	units, calls := unitsAlone, l.allCalls()
	if calls != r.seen {
		units = unitsBesideCalls
		if r.short {
			l.hasten(now)
		}
	}
	line := r.line
	r.line, r.short, r.since, r.seen = r.spare, false, now, calls
	for _, p := range line {
		p.wants = false
		if p.sides[0].fd < 0 || p.loop.Load() != l {
			continue
		}
		l.tell(p, units)
		p.session.Refill(units)
		l.carry(p, toRouter)
		if p.sides[0].fd >= 0 {
			l.again(&p.sides[toRouter])
			l.again(&p.sides[toPeer])
		}
	}
	clear(line)
	r.spare = line[:0]
}

// tell says once of a connection that it is kept waiting beside calls.
func (l *Loop) tell(p *pair, units int) {
	if p.session.Short() && units == unitsBesideCalls && !p.told {
		p.told = true
		p.session.world.log.Info("a peer asks for more than fits beside calls; it is served at a steady pace", zap.Uint64("conn", p.session.id))
	}
}

// hurryFor is how long loops stay in a hurry.
const hurryFor = time.Second

// hasten has every loop take the processor as soon as it is woken: somebody does
// much beside calls, and whoever is patient then waits for milliseconds.
func (l *Loop) hasten(now time.Time) {
	if now.Sub(l.ration.alarm) < hurryFor/2 {
		return
	}
	l.ration.alarm = now
	for _, o := range l.all {
		o.post(func() {
			if o.ration.calm.IsZero() {
				beInTurn(unix.SCHED_NORMAL)
			}
			o.ration.calm = time.Now().Add(hurryFor)
		})
	}
}

func (l *Loop) relax(now time.Time) {
	if r := &l.ration; !r.calm.IsZero() && now.After(r.calm) {
		r.calm = time.Time{}
		beInTurn(unix.SCHED_BATCH)
	}
}
