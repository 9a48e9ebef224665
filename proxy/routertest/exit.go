package routertest

import "time"

// exit is how a process ended.
type exit struct {
	code   *int32
	signal *int32
	atMS   int64
	asked  bool // the router ended it
}

// Exit tells the router that l's process ended with a code. Its connections are
// not touched: they are whoever dialled them's to close.
func (r *Router) Exit(l Launch, code int) { r.exited(l, exit{code: ptr(int32(code))}) }

// Crash tells the router that l's process died of a signal.
func (r *Router) Crash(l Launch, signal int) { r.exited(l, exit{signal: ptr(int32(signal))}) }

// exited finds the process by its PID: a Spawner knows no nonce's end.
func (r *Router) exited(l Launch, e exit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.roster[l.ModuleID]
	if m == nil || r.closed {
		return
	}
	if m.swap != nil && m.swap.exited(r, l.PID, e) {
		return
	}
	if m.launch != nil && m.launch.PID == l.PID {
		r.ended(m, e)
	}
}

// ended records the end of m's live process and decides what comes after.
func (r *Router) ended(m *supervised, e exit) {
	l := m.launch
	e.atMS = time.Now().UnixMilli()
	m.launch, m.last = nil, &e
	r.feed.emit(spawnEvent{
		Kind: "exited", ModuleID: l.ModuleID, Generation: l.Generation, PID: l.PID, ExitCode: e.code, ExitSignal: e.signal,
	})
	switch {
	case m.onExit != nil:
		next := m.onExit
		m.onExit = nil
		next()
	case m.state == stateDraining:
		// Whoever drains it finds it gone.
	case m.swap != nil && m.swap.incumbentDied(r):
	case e.asked:
		m.state = stateStopped
	default:
		r.afterOwnExit(m, e)
	}
}

// afterOwnExit: a clean exit stays stopped, a crash is started again while its
// budget lasts.
func (r *Router) afterOwnExit(m *supervised, e exit) {
	switch {
	case e.code != nil && *e.code == 0:
		m.state = stateStopped
		return
	case !m.budgetLeft():
		m.state = stateFailed
		return
	}
	m.state = stateRestarting
	m.crashes = append(m.crashes, time.Now())
	m.restarts++
	backoff := min(restartBackoff<<(len(m.crashes)-1), maxBackoff)
	r.whenReleased(m, func() { r.startAfter(m, backoff) })
}

func (r *Router) startAfter(m *supervised, d time.Duration) {
	r.later(d, func() {
		if m.enabled && m.launch == nil && m.state == stateRestarting {
			r.start(m, 0)
		}
	})
}

// whenReleased calls next once the dead process's registration is gone. One that
// outlives its process by releaseTimeout is given up for good.
func (r *Router) whenReleased(m *supervised, next func()) {
	reg := r.registry[m.cfg.ID]
	if reg == nil {
		next()
		return
	}
	timer := r.later(releaseTimeout, func() {
		m.onRelease = nil
		m.state = stateFailed
	})
	m.onRelease = func() {
		timer.Stop()
		next()
	}
}

// registrationReleased is told when the endpoint of id on c has gone.
func (r *Router) registrationReleased(c *conn, id string) {
	m := r.roster[id]
	if m == nil {
		return
	}
	if m.swap != nil && m.swap.released(r, c) {
		return
	}
	if m.onRelease != nil && r.registry[id] == nil {
		next := m.onRelease
		m.onRelease = nil
		next()
	}
}

// budgetLeft reports whether a crash now would be followed by a restart.
func (m *supervised) budgetLeft() bool {
	kept := m.crashes[:0]
	for _, at := range m.crashes {
		if time.Since(at) < restartWindow {
			kept = append(kept, at)
		}
	}
	m.crashes = kept
	return m.enabled && len(m.crashes) < maxRestarts
}

// wontRecover is what a crash's route.closed says of id.
func (r *Router) wontRecover(id string) bool {
	m := r.roster[id]
	if m == nil {
		return false
	}
	switch m.state {
	case stateRestarting:
		return false
	case stateFailed, stateDisabled:
		return true
	}
	return !m.budgetLeft()
}

// processLive is what a liveness poll says of id. A module that nobody
// supervises lives as long as its connection does.
func (r *Router) processLive(id string) bool {
	m := r.roster[id]
	return m == nil || m.generation == 0 || m.launch != nil && m.state == stateRunning
}
