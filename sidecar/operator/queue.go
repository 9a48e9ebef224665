package operator

import (
	"sync"

	"scopeward/sidecar/operator/api"
)

// linesQueued is how many lines may wait for the log's writer. Expiries may be
// more: each of them is owed a line, and there are never more of them than
// scopes were.
const linesQueued = 4096

// queue holds the lines that are still to be written, so that a log that is not
// read holds nobody up.
type queue struct {
	wake chan struct{} // holds one

	mu      sync.Mutex
	lines   []*api.Event
	closed  bool
	dropped uint64 // since the start
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// put adds a line. Without owed it is dropped and counted when too many wait.
func (q *queue) put(e *api.Event, owed bool) {
	q.mu.Lock()
	if q.closed || len(q.lines) >= linesQueued && !owed {
		q.dropped++
		q.mu.Unlock()
		return
	}
	q.lines = append(q.lines, e)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, and whether the queue is closed. The lines it returned
// before are used again.
func (q *queue) take(used []*api.Event) ([]*api.Event, bool) {
	if cap(used) > 4*linesQueued {
		used = nil // a burst is over
	}
	clear(used)
	q.mu.Lock()
	defer q.mu.Unlock()
	lines := q.lines
	q.lines = used[:0]
	return lines, q.closed
}

// close takes no more lines. What waits is still written.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// overflown is how many lines were dropped since the start.
func (q *queue) overflown() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
