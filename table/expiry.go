package table

import (
	"container/heap"
	"slices"
	"strings"
)

// Expiry is one session that its deadline ended: one warning.
type Expiry struct {
	ID       ScopeID
	Deadline uint64 // Unix milliseconds
	Routes   int    // live routes closed for it
	Digest   Digest // of its record
}

// deadlines are the sessions of an owner that have one, the earliest first.
type deadlines []*scope

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return *d[i].Record.ExpiresAtMS < *d[j].Record.ExpiresAtMS }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].heap, d[j].heap = i, j
}

// Push is for package heap only.
func (d *deadlines) Push(x any) {
	s := x.(*scope)
	s.heap = len(*d)
	*d = append(*d, s)
}

// Pop is for package heap only.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	s := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	s.heap = -1
	return s
}

func (d *deadlines) add(s *scope) {
	if s.Record.ExpiresAtMS != nil {
		heap.Push(d, s)
	}
}

func (d *deadlines) remove(s *scope) {
	if s.heap >= 0 {
		heap.Remove(d, s.heap)
	}
}

// passed is every session whose deadline is at or before now, by ref. It visits
// those and their neighbours in the heap only, and changes nothing.
func (d deadlines) passed(now int64) []*scope {
	var found []*scope
	var visit func(i int)
	visit = func(i int) {
		if i < len(d) && d[i].Record.Passed(now) {
			found = append(found, d[i])
			visit(2*i + 1)
			visit(2*i + 2)
		}
	}
	visit(0)
	slices.SortFunc(found, func(a, b *scope) int { return strings.Compare(a.ID.Ref, b.ID.Ref) })
	return found
}

// Sweep ends every session whose deadline is at or before now, Unix milliseconds
// of the wall clock (section 2, expiry). It needs no authority and changes neither
// authority nor generation.
func (t *Table) Sweep(now int64) ([]Expiry, []Drain) {
	t.mu.Lock()
	b := t.beginLocked()
	var swept []*scope
	for _, o := range t.owners {
		swept = append(swept, o.deadlines.passed(now)...)
	}
	slices.SortFunc(swept, func(a, b *scope) int { return a.ID.Compare(b.ID) })
	expired := b.sweepLocked(swept)
	b.settleEndedLocked()
	drains := b.commitLocked()
	b.tellLocked(nil)
	t.mu.Unlock()
	b.wake()
	return expired, drains
}

// HasDeadlines says whether any live scope has a deadline: while it does, the
// caller sweeps at most one second apart.
func (t *Table) HasDeadlines() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.owners {
		if len(o.deadlines) > 0 {
			return true
		}
	}
	return false
}
