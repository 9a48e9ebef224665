package sidecar

import "scopeward/proxy"

// A module whose Hello was answered may be stopped by our end in the next
// instant, so its id is in the file before the Hello goes on. One that comes of
// it to nothing leaves the file with its connection.

// expect notes a Hello that is about to go on, and calls tell once the file has
// its id. It never blocks; tell may come before it returns.
func (h *healer) expect(id proxy.ConnID, moduleID string, tell func()) {
	h.mu.Lock()
	if h.path == "" || h.over {
		h.mu.Unlock()
		tell()
		return
	}
	h.expected[id] = moduleID
	if _, ok := h.saved[moduleID]; ok {
		h.mu.Unlock() // and whoever saves next writes it again
		tell()
		return
	}
	h.waiting = append(h.waiting, tell)
	h.touchLocked()
	h.mu.Unlock()
}

// closed notes the end of a connection.
func (h *healer) closed(id proxy.ConnID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.expected[id]; ok && !h.held {
		delete(h.expected, id)
		h.touchLocked()
	}
}

// end lets go of whoever waits for a save that does not come any more.
func (h *healer) end() {
	h.mu.Lock()
	h.over = true
	waiting := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	for _, tell := range waiting {
		tell()
	}
}
