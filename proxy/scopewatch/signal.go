package scopewatch

// signal is closed when something may have changed for those that wait for a
// key.
type signal struct {
	fired   chan struct{}
	waiters int
}

// awaitLocked joins those that wait for a key. The caller leaves again.
func (w *Watcher) awaitLocked(k key) *signal {
	s := w.waiting[k]
	if s == nil {
		s = &signal{fired: make(chan struct{})}
		w.waiting[k] = s
	}
	s.waiters++
	return s
}

// leave gives up a wait.
func (w *Watcher) leave(k key, s *signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.waiters--; s.waiters == 0 && w.waiting[k] == s {
		delete(w.waiting, k)
	}
}

func (w *Watcher) wakeLocked(k key) {
	if s := w.waiting[k]; s != nil {
		close(s.fired)
		delete(w.waiting, k)
	}
}

func (w *Watcher) wakeOwnerLocked(p Principal) {
	for k := range w.waiting {
		if k.owner == p {
			w.wakeLocked(k)
		}
	}
}

func (w *Watcher) wakeAllLocked() {
	for k := range w.waiting {
		w.wakeLocked(k)
	}
}
