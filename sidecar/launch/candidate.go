package launch

import (
	"fmt"

	"scopeward/proxy"
)

// besideTries is how often the router is asked, before a Hello, whether its id is
// registered already: the registration of a connection that just closed goes in
// the meantime, an incumbent's stays.
const besideTries = 3

// lookBeside notes which launch lives when a Hello comes beside another that is
// registered straight at the router: accepted, it is a swap's candidate. So it is
// when a module is put behind us by a swap. A registration through us is known.
func (s *span) lookBeside(q proxy.Question) {
	generation := uint64(0)
	if !s.registeredHere(q.ModuleID) && s.staysRegistered(q.ModuleID) {
		if snap, err := s.link().SpawnSnapshot(s.ctx); err == nil {
			s.merge(snap)
		}
		generation = s.liveGeneration(q.ModuleID)
	}
	s.mu.Lock()
	delete(s.beside, q.Conn)
	if generation != 0 {
		s.beside[q.Conn] = generation
	}
	s.mu.Unlock()
	s.forget(q.Conn)
}

// staysRegistered reports whether the module is registered and stays so.
func (s *span) staysRegistered(moduleID string) bool {
	for try := range besideTries {
		if try > 0 && !s.pause(standingPause) {
			return false
		}
		if taken, err := s.link().Registered(s.ctx, moduleID); err != nil || !taken {
			return false
		}
	}
	return true
}

func (s *span) registeredHere(moduleID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.modules[moduleID]
	return m != nil && len(m.regs) > 0
}

// liveGeneration is the module's living launch as the feed has told it, 0 for
// none. There is no candidate without one.
func (s *span) liveGeneration(moduleID string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.modules[moduleID]; m != nil && m.currentLocked() != nil {
		return m.newest
	}
	return 0
}

// mayBeCandidate reports whether p can be a swap's candidate: the feed names it
// only at cutover. It is a child of the router, no launch that the feed names,
// and another Hello of its id is live, through us or straight at the router.
func (s *span) mayBeCandidate(moduleID string, p Process) bool {
	if !s.feed || !s.childOfRouter(p, false) || s.launched(p) {
		return false
	}
	if s.registeredHere(moduleID) {
		return true
	}
	if s.liveGeneration(moduleID) == 0 {
		return false
	}
	taken, err := s.link().Registered(s.ctx, moduleID)
	return err == nil && taken
}

// launched reports whether the feed names p as a launch of any module.
func (s *span) launched(p Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.modules {
		for _, l := range m.live {
			if l.pid == p.PID {
				return true
			}
		}
	}
	return false
}

func (s *span) admitCandidate(moduleID string, p Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moduleLocked(moduleID).swap = &p
}

// compareCandidate checks at cutover that the launch the feed names is the
// process that was let in for it.
func (s *span) compareCandidate(moduleID string, let, named Process) {
	if now, ok := s.t.p.Attributor.Lookup(let.PID); !ok || !now.Same(let) {
		return // the candidate was rolled back before
	}
	if let.Same(named) || named.Start != 0 && s.t.descends(let, named, s.t.now().tree()) {
		return
	}
	if s.t.p.Report != nil {
		s.t.p.Report(Mismatch{
			Kind: proxy.AskHello, ModuleID: moduleID, Process: let,
			Reason:  fmt.Sprintf("pid %d was taken for the candidate, the router launched pid %d", let.PID, named.PID),
			Refused: s.t.now().enforces(),
		})
	}
	if s.t.now().enforces() {
		s.cutProcess(let)
	}
}
