package bpf

import (
	"sync"

	"golang.org/x/sys/unix"
)

// held are the processes that connections hold: each by one pidfd, however many
// connections it has. The zero value holds none.
type held struct {
	starts

	mu sync.Mutex
	by map[Instance]*hold
}

// hold is a pidfd and how many connections share it.
type hold struct {
	of     *held
	id     Instance
	pidfd  int
	shared int
}

// share takes pidfd, which is id's, over, and gives back the hold that id has.
func (h *held) share(id Instance, pidfd int) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.by[id]; known != nil {
		_ = unix.Close(pidfd) // nothing was written to it
		known.shared++
		return known
	}
	if h.by == nil {
		h.by = map[Instance]*hold{}
	}
	one := &hold{of: h, id: id, pidfd: pidfd, shared: 1}
	h.by[id] = one
	return one
}

// release gives back one share. The last closes the pidfd.
func (o *hold) release() error {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	if o.shared--; o.shared > 0 {
		return nil
	}
	delete(o.of.by, o.id)
	return unix.Close(o.pidfd)
}
