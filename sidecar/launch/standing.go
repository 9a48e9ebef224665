package launch

import (
	"maps"
	"slices"
	"time"

	"scopeward/proxy"
	"scopeward/sidecar/router"
)

// A probe that tells nothing is asked again, this often and this far apart,
// before a sync is told that its launch is not known to be current.
const (
	standingTries = 5
	standingPause = 100 * time.Millisecond
)

// settled answers what needs no question: a nonce that is no launch's, and a
// registration that is placed while no other of its id is live.
func (s *span) settled(id proxy.ConnID) (proxy.Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.regs[id]
	switch {
	case r == nil || !r.open():
		return proxy.Answer{}, true
	case len(r.module.regs) > 1 || r.launch == 0:
		return proxy.Answer{}, false
	}
	return s.standingLocked(r), true
}

// standing says whether a registration's nonce is the current launch's. While
// two Hellos of an id are live the router is asked first: a candidate is not
// current before cutover, an incumbent not after it.
func (s *span) standing(id proxy.ConnID) proxy.Answer {
	for try := range standingTries {
		if try > 0 && !s.pause(standingPause) {
			break
		}
		if a, ok := s.standingOnce(id); ok {
			return a
		}
	}
	return proxy.Answer{}
}

func (s *span) standingOnce(id proxy.ConnID) (proxy.Answer, bool) {
	s.mu.Lock()
	r := s.regs[id]
	s.mu.Unlock()
	if r == nil {
		return proxy.Answer{}, true
	}
	s.settle(r.module)
	// The router notes a launch once its process has been started: a quick one says
	// Hello before that, when no snapshot shows a launch of its module.
	unnoted := false
	if s.feed && s.contested(r) {
		snap, err := s.link().SpawnSnapshot(s.ctx)
		if err != nil {
			return proxy.Answer{}, false
		}
		s.merge(snap)
		s.place(r)
		unnoted = !slices.ContainsFunc(snap.Live, func(l router.Spawn) bool { return l.ModuleID == r.module.id })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.open() && r.verdict == router.Unknown {
		return proxy.Answer{}, false
	}
	if unnoted && r.verdict == router.Genuine && r.launch == 0 {
		return proxy.Answer{}, false
	}
	return s.standingLocked(r), true
}

// contested reports whether the router must be asked which launch is current: two
// Hellos of an id are live, or one is not placed yet.
func (s *span) contested(r *registration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(r.module.regs) > 1 || r.launch == 0
}

// standingLocked answers from what is known.
func (s *span) standingLocked(r *registration) proxy.Answer {
	if r.verdict != router.Genuine {
		return proxy.Answer{}
	}
	a := proxy.Answer{Launch: r.launch}
	if !s.feed {
		// All there is: the newest accepted Hello with a living launch's nonce.
		for _, o := range r.module.regs {
			if o.verdict == router.Genuine {
				a.Current = o == r
			}
		}
		return a
	}
	current := r.module.currentLocked()
	a.Current = current != nil && r.generation == current.generation
	return a
}

// settle judges and places every registration of m that is not placed yet, in
// the order their Hellos were accepted.
func (s *span) settle(m *module) {
	if !s.takeTurn(m) {
		return
	}
	defer s.giveTurn(m)
	for _, r := range s.unplaced(m) {
		if !s.learnBirth(r) {
			return
		}
		if r.verdict == router.Unknown {
			v := s.attest(m.id, r.nonce)
			s.mu.Lock()
			r.verdict = v
			s.mu.Unlock()
		}
		s.place(r)
	}
}

func (s *span) unplaced(m *module) []*registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*registration
	for _, r := range m.regs {
		if r.open() && r.launch == 0 {
			open = append(open, r)
		}
	}
	return open
}

// learnBirth asks which generation lives. A launch is in the feed before its
// Hello can be accepted, a candidate is not: so this tells one from the other,
// and the events that are still on their way to us do not matter.
func (s *span) learnBirth(r *registration) bool {
	if !s.feed {
		return true
	}
	s.mu.Lock()
	known := r.bornKnown
	s.mu.Unlock()
	if known {
		return true
	}
	snap, err := s.link().SpawnSnapshot(s.ctx)
	if err != nil {
		return false
	}
	s.merge(snap)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.bornKnown, r.born = true, r.module.newest
	for _, l := range snap.Live {
		if l.ModuleID == r.module.id {
			r.born, r.bornLive = l.Generation, true
		}
	}
	return true
}

// place gives a genuine registration its launch: the generation that lived when
// it registered, unless another nonce has that place. Then it is a candidate
// and waits for the generation that the feed spawns next.
func (s *span) place(r *registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := r.module
	if r.verdict != router.Genuine || r.launch != 0 {
		return
	}
	if !s.feed {
		if m.minted[r.print] == 0 {
			m.minted[r.print] = s.mintLocked()
		}
		r.launch = m.minted[r.print]
		return
	}
	switch {
	case r.bornLive && !m.takenLocked(r):
		s.assignLocked(r, r.born)
	case m.newest > r.born:
		s.assignLocked(r, m.newest)
	}
}

// takenLocked reports whether another nonce has, or may yet get, the generation
// that r was born in. One that had it once has it for good: an incumbent may be
// gone before its candidate is judged, and it need not be behind us at all.
func (m *module) takenLocked(r *registration) bool {
	if print, owned := m.owned[r.born]; owned {
		return print != r.print
	}
	if r.beside == r.born {
		return true
	}
	for _, o := range m.regs {
		if o == r {
			return false
		}
		if o.print == r.print || !o.open() {
			continue
		}
		if o.generation == r.born || o.generation == 0 && o.born == r.born {
			return true
		}
	}
	return false
}

// assignLocked places r in a generation. One whose process has exited meanwhile
// is cut: its event found nobody to cut.
func (s *span) assignLocked(r *registration, generation uint64) {
	r.generation = generation
	m := r.module
	if _, owned := m.owned[generation]; !owned {
		m.owned[generation] = r.print
	}
	maps.DeleteFunc(m.owned, func(old uint64, _ fingerprint) bool { return old+1 < m.newest })
	if l := m.live[generation]; l != nil {
		r.launch = l.launch
		return
	}
	r.launch = s.mintLocked()
	if conn := r.conn; !s.ended {
		s.jobs.Go(func() { s.cut(conn, "its launch has exited") })
	}
}

func (s *span) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
