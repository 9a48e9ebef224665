package launch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"scopeward/proxy"
	"scopeward/sidecar/router"
	"scopeward/table"
)

// span is everything known between one Attach and its Detach.
type span struct {
	t      *Table
	cut    func(id proxy.ConnID, why string)
	feed   bool // the router has a spawn feed
	wire   atomic.Pointer[Link]
	ctx    context.Context // ends with the span; jobs have no other
	cancel context.CancelFunc
	jobs   sync.WaitGroup
	roster roster
	probes limiter

	mu      sync.Mutex
	ended   bool
	modules map[string]*module
	regs    map[proxy.ConnID]*registration
	beside  map[proxy.ConnID]uint64      // Hellos not accepted yet: see registration
	foreign map[proxy.ConnID]fingerprint // the last nonce of a connection that is no launch's
	minted  table.Launch
}

func newSpan(t *Table, l Link, cut func(proxy.ConnID, string)) *span {
	ctx, cancel := context.WithCancel(context.Background())
	s := &span{
		t: t, cut: cut, feed: l.Subscribe != nil, ctx: ctx, cancel: cancel,
		probes:  newLimiter(probeBurst, probeEvery),
		modules: map[string]*module{},
		regs:    map[proxy.ConnID]*registration{},
		beside:  map[proxy.ConnID]uint64{},
		foreign: map[proxy.ConnID]fingerprint{},
	}
	s.wire.Store(&l)
	return s
}

func (s *span) link() *Link { return s.wire.Load() }

// begin takes the first snapshot and starts to follow the feed.
func (s *span) begin(ctx context.Context) error {
	if !s.feed {
		return nil
	}
	snap, err := s.link().SpawnSnapshot(ctx)
	if err != nil {
		return err
	}
	s.merge(snap)
	s.job(func() { s.follow(snap.Cursor) })
	return nil
}

func (s *span) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.cancel()
	s.jobs.Wait()
}

// job runs f on a goroutine of the span. It returns false when the span has
// ended.
func (s *span) job(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.jobs.Go(f)
	return true
}

func (s *span) moduleLocked(id string) *module {
	m := s.modules[id]
	if m == nil {
		m = &module{
			id:     id,
			turn:   make(chan struct{}, 1),
			live:   map[uint64]*process{},
			owned:  map[uint64]fingerprint{},
			minted: map[fingerprint]table.Launch{},
			pinned: map[fingerprint]Process{},
		}
		m.turn <- struct{}{}
		s.modules[id] = m
	}
	return m
}

func (s *span) mintLocked() table.Launch {
	s.minted++
	return s.minted
}

// add notes an accepted Hello and judges its nonce in the background: a launch's
// exit must find its connection placed.
func (s *span) add(id proxy.ConnID, moduleID, nonce string) {
	s.mu.Lock()
	s.removeLocked(id)
	m := s.moduleLocked(moduleID)
	r := &registration{conn: id, nonce: nonce, print: fingerprintOf(nonce), module: m, beside: s.beside[id]}
	delete(s.beside, id)
	m.regs = append(m.regs, r)
	s.regs[id] = r
	s.mu.Unlock()
	if nonce != "" {
		s.job(func() { s.settle(m) })
	}
}

func (s *span) remove(id proxy.ConnID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(id)
}

func (s *span) removeLocked(id proxy.ConnID) {
	r := s.regs[id]
	if r == nil {
		return
	}
	delete(s.regs, id)
	m := r.module
	m.regs = slices.DeleteFunc(m.regs, func(o *registration) bool { return o == r })
	if len(m.regs) == 0 && m.newest == 0 {
		// Never launched by this router: nothing is worth keeping.
		delete(s.modules, m.id)
	}
}

// closed forgets a connection that ended.
func (s *span) closed(id proxy.ConnID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.beside, id)
	delete(s.foreign, id)
}

// forget is closed for a connection that may have ended while the router was
// asked.
func (s *span) forget(id proxy.ConnID) {
	if !s.t.open(id) {
		s.closed(id)
	}
}

// answer dispatches a question. What is known already is answered on the spot.
func (s *span) answer(q proxy.Question, reply func(proxy.Answer)) {
	var judge func() proxy.Answer
	switch q.Kind {
	case proxy.AskRoster:
		if configured, fresh := s.roster.cached(q.ModuleID); fresh {
			reply(proxy.Answer{Configured: configured})
			return
		}
		judge = func() proxy.Answer { return proxy.Answer{Configured: s.configured(q.ModuleID)} }
	case proxy.AskStanding:
		if a, ok := s.settled(q.Conn); ok {
			reply(a)
			return
		}
		judge = func() proxy.Answer { return s.standing(q.Conn) }
	case proxy.AskHello:
		// Beside whom it comes must be known before the router can accept it.
		if s.liveGeneration(q.ModuleID) == 0 {
			s.vet(q, reply)
			return
		}
		if !s.job(func() { s.lookBeside(q); s.vet(q, reply) }) {
			reply(proxy.Answer{})
		}
		return
	case proxy.AskIdentity:
		s.vet(q, reply)
		return
	default:
		reply(proxy.Answer{})
		return
	}
	if !s.job(func() { reply(judge()) }) {
		reply(proxy.Answer{Configured: true})
	}
}

// takeTurn waits for the right to ask the router about m, so that at most one
// probe of a nonce is in flight. It returns false when the span ends first.
func (s *span) takeTurn(m *module) bool {
	select {
	case <-m.turn:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *span) giveTurn(m *module) { m.turn <- struct{}{} }

// attest probes a nonce within the span's budget.
func (s *span) attest(moduleID, nonce string) router.Verdict {
	if !s.probes.take(s.ctx) {
		return router.Unknown
	}
	v, err := s.link().Attest(s.ctx, moduleID, nonce)
	if err != nil {
		return router.Unknown
	}
	return v
}
