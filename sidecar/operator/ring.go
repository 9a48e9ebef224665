package operator

import (
	"sync"

	"scopeward/sidecar/operator/api"
)

// refusalsKept is how many refusals can be read back.
const refusalsKept = 10_000

// ring keeps the last refusals.
type ring struct {
	mu    sync.Mutex
	kept  []*api.Event // never changed once they are in
	next  int          // where the next one goes, once the ring is full
	total uint64
}

func (r *ring) add(e *api.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if len(r.kept) < refusalsKept {
		r.kept = append(r.kept, e)
		return
	}
	r.kept[r.next] = e
	r.next = (r.next + 1) % refusalsKept
}

// last returns at most limit refusals that match, the newest first, and how many
// there ever were.
func (r *ring) last(limit int, match func(*api.Event) bool) ([]api.Event, uint64) {
	r.mu.Lock()
	n := len(r.kept)
	all := make([]*api.Event, n)
	for i := range n {
		all[i] = r.kept[(r.next+n-1-i)%n]
	}
	total := r.total
	r.mu.Unlock()
	found := []api.Event{}
	for _, e := range all {
		if len(found) == limit {
			break
		}
		if match(e) {
			found = append(found, *e)
		}
	}
	return found, total
}
