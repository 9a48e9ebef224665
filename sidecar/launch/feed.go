package launch

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/router"
)

// feedPause is how long a feed that ended is left alone before the next try.
const feedPause = 50 * time.Millisecond

// follow applies the router's feed from cursor on until the span ends. A feed
// that ends, with its link too, is taken up at its last event; one whose events
// are gone begins with a new snapshot.
func (s *span) follow(cursor router.Cursor) {
	for s.ctx.Err() == nil {
		err := s.drain(&cursor)
		if s.ctx.Err() != nil {
			return
		}
		code := router.Refused(err)
		if !errors.Is(err, router.ErrClosed) {
			s.t.p.Log.Debug("the spawn feed ended", zap.String("code", code), zap.Error(err))
		}
		if code == router.CodeCursorTooOld || code == router.CodeCursorMismatch {
			if at, ok := s.mend(); ok {
				cursor = at
			}
		}
		if !s.pause(feedPause) {
			return
		}
	}
}

// mend begins anew with a snapshot where events were lost: a module's newest
// launch that it does not show has exited.
func (s *span) mend() (router.Cursor, bool) {
	before := s.currents()
	snap, err := s.link().SpawnSnapshot(s.ctx)
	if err != nil {
		return router.Cursor{}, false
	}
	s.merge(snap)
	for _, l := range snap.Live {
		delete(before, l.ModuleID)
	}
	for id, l := range before {
		s.exited(id, l.generation, l.pid)
	}
	return snap.Cursor, true
}

// currents is every module's current launch.
func (s *span) currents() map[string]*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]*process{}
	for id, m := range s.modules {
		if l := m.currentLocked(); l != nil {
			all[id] = l
		}
	}
	return all
}

func (s *span) drain(cursor *router.Cursor) error {
	feed, err := s.link().Subscribe(*cursor)
	if err != nil {
		return err
	}
	defer feed.Close()
	for {
		e, err := feed.Next(s.ctx)
		if err != nil {
			return err
		}
		*cursor = e.Cursor
		s.apply(e)
	}
}

// apply takes one event. Events and snapshots overlap: an event that a snapshot
// has told already changes nothing.
func (s *span) apply(e router.Event) {
	switch e.Kind {
	case router.Spawned:
		s.spawned(e.ModuleID, e.Generation, e.PID)
	case router.Exited:
		s.exited(e.ModuleID, e.Generation, e.PID)
	}
}

// merge takes a snapshot. What it does not show is left to the feed's exits: an
// incumbent that still drains is not in it.
func (s *span) merge(snap router.Snapshot) {
	for _, l := range snap.Live {
		s.spawned(l.ModuleID, l.Generation, l.PID)
	}
}

// spawned notes a launch and gives it to the candidate that waited for it.
func (s *span) spawned(moduleID string, generation uint64, pid uint32) {
	s.mu.Lock()
	known := s.moduleLocked(moduleID).newest >= generation
	s.mu.Unlock()
	if known {
		return
	}
	s.roster.distrust(moduleID)
	p := &process{generation: generation, pid: pid}
	if a := s.t.p.Attributor; a != nil {
		// The router has not reaped it, so the PID is still its own.
		p.seen, _ = a.Lookup(pid)
	}
	s.mu.Lock()
	m := s.moduleLocked(moduleID)
	if m.newest >= generation {
		s.mu.Unlock()
		return
	}
	p.launch = s.mintLocked()
	m.newest = generation
	m.live[generation] = p
	for _, r := range m.regs {
		if r.verdict == router.Genuine && r.launch == 0 && r.bornKnown && r.born < generation {
			s.assignLocked(r, generation)
			break
		}
	}
	swap := m.swap
	m.swap = nil
	s.mu.Unlock()
	if swap != nil {
		s.compareCandidate(m.id, *swap, p.seen)
	}
}

// exited notes the end of a launch and cuts its connections at once: a module
// whose connection outlives its process by a second is given up by the router
// for good.
func (s *span) exited(moduleID string, generation uint64, pid uint32) {
	s.mu.Lock()
	m := s.moduleLocked(moduleID)
	dead := m.live[generation]
	delete(m.live, generation)
	if m.newest < generation {
		m.newest = generation
	}
	var hellos []proxy.ConnID
	for _, r := range m.regs {
		if r.generation == generation {
			hellos = append(hellos, r.conn)
		}
	}
	if dead != nil {
		for print, p := range m.pinned {
			if p.Same(dead.seen) {
				delete(m.pinned, print)
			}
		}
	}
	s.mu.Unlock()
	for _, id := range hellos {
		s.cut(id, "its launch has exited")
	}
	if dead != nil && dead.seen.Start != 0 {
		s.cutProcess(dead.seen)
	}
}

// cutProcess cuts every connection that attribution says a process opened.
func (s *span) cutProcess(dead Process) {
	for _, id := range s.t.connectionsOf(dead) {
		s.cut(id, "its process has exited")
	}
}
