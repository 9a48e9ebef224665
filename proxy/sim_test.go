package proxy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// sim is one seeded run: sessions, the table, a model of the router, modules,
// clients and a clock, all on one goroutine. Nothing happens but by a step, and
// the seed chooses every step: which bytes move and how many of them, which event
// is handled, which answer comes, who does what, who is cut.
type sim struct {
	rng    *rand.Rand
	world  *World
	router *simRouter
	links  []*simLink // by id; a link goes when nothing moves on it any more
	last   ConnID
	asks   []func() // questions that wait for their answer
	jobs   []func()

	held      [3]simHeld
	owners    []*simOwner
	refs      map[string]simRef // what a tag's open named, "" for no scope
	launches  map[string]int    // the current launch of a module id
	ifIdle    map[string]bool   // ref@epoch: it may only replace an idle one
	empty     bool              // only owners are left: every session is idle
	committed int
	drained   int
	stale     int
	steps     int

	digest uint64   // of everything that happened
	trace  []string // its end
	broken string   // the first law that was broken
}

// simHeld is one hop, or the events of one link, that nothing moves on until a
// step.
type simHeld struct {
	id    ConnID
	h     hop // hops for the events
	until int
}

// simRef is what a scoped open names.
type simRef struct {
	owner, ref string
	epoch      uint64
}

func newSim(seed uint64) *sim {
	s := &sim{
		rng:  rand.New(rand.NewPCG(seed, 0x5c09e)),
		refs: map[string]simRef{}, launches: map[string]int{}, ifIdle: map[string]bool{},
	}
	s.router = &simRouter{sim: s, modules: map[string]*simConn{}}
	s.world = &World{
		Table:       table.New(table.Config{Incarnation: "00112233445566778899aabbccddeeff", AuthorityOwners: []string{"owner"}}),
		Incarnation: "00112233445566778899aabbccddeeff",
		log:         zap.NewNop(), launches: s, recorder: s,
		now:   func() int64 { return time.Now().UnixMilli() },
		post:  s.post,
		work:  func(job func()) { s.jobs = append(s.jobs, job) },
		opens: make(map[string]*open),
	}
	return s
}

func (s *sim) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", s.digest, line)
	s.digest = h.Sum64()
	if len(s.trace) >= 400 {
		s.trace = slices.Delete(s.trace, 0, 200)
	}
	s.trace = append(s.trace, line)
}

// fail notes the first law that was broken and ends the run.
func (s *sim) fail(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
		s.note("BROKEN %s", s.broken)
	}
}

func (s *sim) chance(percent int) bool { return s.rng.IntN(100) < percent }

func pick[T any](s *sim, of []T) T { return of[s.rng.IntN(len(of))] }

// post gives a session an event. It is handled at a later step.
func (s *sim) post(id ConnID, e Event) {
	if l := s.link(id); l != nil {
		l.events = append(l.events, e)
	}
}

func (s *sim) link(id ConnID) *simLink {
	i := slices.IndexFunc(s.links, func(l *simLink) bool { return l.id == id })
	if i < 0 {
		return nil
	}
	return s.links[i]
}

// connect makes a link that has authenticated on both sides.
func (s *sim) connect(peer func(*simLink) simPeer) *simLink {
	s.last++
	l := &simLink{sim: s, id: s.last, s: newSession(s.last, s.world)}
	l.far = newSimConn(s.router, l)
	l.peer = peer(l)
	s.links = append(s.links, l)
	return l
}

// happenings are what can happen now beside what peers do of their own accord.
func (s *sim) happenings() []func() {
	var list []func()
	s.links = slices.DeleteFunc(s.links, (*simLink).dead)
	for _, l := range s.links {
		for h := range hops {
			if l.movable(h) && !s.holds(l, h) {
				list = append(list, func() { l.move(h) })
			}
		}
		if l.s.Short() {
			list = append(list, func() {
				n := 1 + s.rng.IntN(2*requestUnits)
				s.note("%d gets %d units", l.id, n)
				l.s.Refill(n)
				l.carry()
			})
		}
		if len(l.events) > 0 && !s.holds(l, hops) {
			list = append(list, func() {
				e := l.events[0]
				l.events = l.events[1:]
				s.note("%d handles %T", l.id, e)
				l.s.Handle(e)
				l.carry()
			})
		}
	}
	if len(s.asks) > 0 {
		list = append(list, func() { take(s, &s.asks)() })
	}
	if len(s.jobs) > 0 {
		list = append(list, func() { take(s, &s.jobs)() })
	}
	return list
}

func (s *sim) holds(l *simLink, h hop) bool {
	return slices.ContainsFunc(s.held[:], func(x simHeld) bool { return x.id == l.id && x.h == h && s.steps < x.until })
}

// delay holds something up for a while.
func (s *sim) delay() {
	if len(s.links) > 0 {
		s.held[s.rng.IntN(len(s.held))] = simHeld{pick(s, s.links).id, hop(s.rng.IntN(int(hops) + 1)), s.steps + 10 + s.rng.IntN(60)}
	}
}

// take takes any of list out of it.
func take[T any](s *sim, list *[]T) T {
	i := s.rng.IntN(len(*list))
	x := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x
}

// step lets one thing happen.
func (s *sim) step() {
	s.steps++
	happenings := s.happenings()
	switch {
	case len(happenings) > 0 && s.chance(75):
		pick(s, happenings)()
	case s.chance(4):
		s.tick()
	case s.chance(3):
		s.fault()
	case s.chance(10):
		s.delay()
	case s.chance(10):
		s.arrive()
	case len(s.links) > 0:
		pick(s, s.links).peer.act()
	}
	s.world.render()
	if s.steps%8 == 0 {
		s.checkTable()
	}
}

// tick lets time pass, and what hangs on it happen.
func (s *sim) tick() {
	d := time.Duration(1+s.rng.IntN(900)) * time.Millisecond
	if s.chance(25) {
		d = time.Duration(1+s.rng.IntN(14)) * time.Second
	}
	s.note("%s pass", d)
	<-time.After(d)
	s.router.expire()
	s.world.Sweep()
}

// fault cuts or closes something.
func (s *sim) fault() {
	if len(s.links) == 0 {
		return
	}
	l := pick(s, s.links)
	what := s.rng.IntN(5)
	s.note("%d fault %d", l.id, what)
	switch what {
	case 0: // the peer closes
		l.shut(peerOut)
	case 1: // the peer dies inside a frame
		l.lose(peerOut)
	case 2: // the router drops the connection
		s.router.ended(l.far)
		l.shut(routerOut)
	case 3: // we cut it
		l.events = append(l.events, cutEvent{"the simulation"})
	case 4: // an operator closes routes by hand
		l.events = append(l.events, evictEvent{l.id, func(table.ScopeID) bool { return true }, func(int) {}})
	}
}

// settle lets everything that is under way happen, and nothing new. Peers answer
// what they have held back.
func (s *sim) settle() {
	clear(s.held[:])
	for range 100_000 {
		if s.broken != "" {
			return
		}
		if happenings := s.happenings(); len(happenings) > 0 {
			pick(s, happenings)()
			s.world.render()
			continue
		}
		for _, l := range s.links {
			l.peer.obey()
		}
		if len(s.happenings()) == 0 {
			return
		}
	}
	s.fail("it does not come to rest")
}

// run plays a seed to its end.
func (s *sim) run() {
	for _, id := range []string{"owner", "child", "tool", "slow"} {
		s.module(id)
	}
	for range 3 {
		s.client()
	}
	if s.chance(80) { // else the owners come late
		s.settle()
		for _, l := range s.links {
			if m, ok := l.peer.(*simModule); ok && m.owner != nil {
				for range 3 {
					m.calls = append(m.calls, m.request(m.owner.call(s)))
				}
			}
		}
		s.settle()
	}
	rounds := 2 + s.rng.IntN(3)
	for range rounds {
		for range 60 + s.rng.IntN(120) {
			if s.step(); s.broken != "" {
				return
			}
		}
		s.settle()
		s.checkRest()
	}
	s.close()
}

// Record looks at each decision as it falls.
func (s *sim) Record(d Decision) {
	s.note("%d %s %s %s %s", d.Conn, d.Kind, d.Scope, d.Target, d.Code)
	switch d.Kind {
	case Committed:
		s.committed++
		s.checkCommit(d)
	case Stale:
		s.stale++
	case Drained:
		s.drained++
	case Synced, Applied:
		s.checkApplied(d.Applied)
	}
}

func (s *sim) Registered(ConnID, string, string) {}
func (s *sim) Severed(ConnID)                    {}
func (s *sim) Unregistered(ConnID)               {}

// Ask answers at once or later, as it comes.
func (s *sim) Ask(q Question, reply func(Answer)) {
	var a Answer
	switch q.Kind {
	case AskRoster:
		a.Configured = q.ModuleID != "stranger"
	case AskStanding:
		n := 0
		_, _ = fmt.Sscanf(q.Nonce, "n%d", &n)
		a.Launch, a.Current = table.Launch(n), n == s.launches[q.ModuleID]
	}
	if s.chance(60) {
		reply(a)
		return
	}
	s.asks = append(s.asks, func() {
		s.note("%d answered %d", q.Conn, q.Kind)
		reply(a)
	})
}

// frames takes whole frames off the front of buf.
func (s *sim) frames(who string, buf *[]byte, each func(wire.Frame)) {
	for s.broken == "" {
		h, err := wire.ParseHeader(*buf)
		if err == wire.ErrShort {
			return
		}
		if err != nil || !h.Legal() {
			s.fail("%s: no frame where one begins: %v %+v", who, err, h)
			return
		}
		end := wire.HeaderLen + int(h.Len)
		if len(*buf) < end {
			return
		}
		body := slices.Clone((*buf)[wire.HeaderLen:end])
		*buf = (*buf)[end:]
		s.note("%s gets %s %d/%d corr %d len %d", who, h.Type, h.Channel, h.Epoch, h.Corr, h.Len)
		each(wire.Frame{Header: h, Body: body})
	}
}
