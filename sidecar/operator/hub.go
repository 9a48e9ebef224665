package operator

import (
	"slices"
	"sync"
	"sync/atomic"

	"scopeward/sidecar/operator/api"
)

// backlog is how many events may wait for one reader: more than a sweep of an
// owner's whole set makes at once.
const backlog = 16 << 10

// hub hands events to readers. One that does not keep up is cut: it is never
// waited for.
type hub struct {
	readers atomic.Int64
	lagged  atomic.Uint64 // readers cut so far

	mu   sync.Mutex
	subs map[*subscription]struct{}
}

// subscription is one reader. Its events are closed when it is cut.
type subscription struct {
	events chan *api.Event
	kinds  []string // nil: all
}

func newHub() *hub { return &hub{subs: map[*subscription]struct{}{}} }

func (h *hub) subscribe(kinds []string) *subscription {
	s := &subscription{events: make(chan *api.Event, backlog), kinds: kinds}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s] = struct{}{}
	h.readers.Add(1)
	return s
}

func (h *hub) unsubscribe(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(s)
}

func (h *hub) removeLocked(s *subscription) {
	if _, ok := h.subs[s]; ok {
		delete(h.subs, s)
		h.readers.Add(-1)
	}
}

// publish gives e to every reader of its kind.
func (h *hub) publish(e *api.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if s.kinds != nil && !slices.Contains(s.kinds, e.Kind) {
			continue
		}
		select {
		case s.events <- e:
		default:
			h.removeLocked(s)
			h.lagged.Add(1)
			close(s.events)
		}
	}
}
