package table

import (
	"cmp"
	"slices"
)

// Cause is why a session ended.
type Cause uint8

const (
	// CauseExpired says that its deadline passed.
	CauseExpired Cause = iota + 1
	// CauseOwnerEnded says that its owner omitted, ended or replaced it.
	CauseOwnerEnded
)

var causes = [...]string{CauseExpired: "expired", CauseOwnerEnded: "owner_ended"}

// String is the cause as it is printed.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c]
	}
	return ""
}

// TombstoneReader remembers ends beyond memory's bound.
type TombstoneReader interface {
	Cause(ScopeID) (Cause, bool)
}

// tombstones are the ended epochs of an owner, oldest first and bounded.
type tombstones struct {
	limit int
	next  uint64 // number of the next one
	order []tombstone
	head  int // of order; what is before it is forgotten
	byRef map[string][]epochStone
}

type tombstone struct {
	ref   string
	epoch uint64
}

// epochStone is one ended epoch of a ref. They are in the order of their epochs.
type epochStone struct {
	epoch  uint64
	number uint64
	cause  Cause
}

func newTombstones(limit int) tombstones {
	return tombstones{limit: limit, byRef: map[string][]epochStone{}}
}

func (t *tombstones) len() int { return len(t.order) - t.head }

func findEpoch(stones []epochStone, epoch uint64) (int, bool) {
	return slices.BinarySearchFunc(stones, epoch, func(s epochStone, epoch uint64) int {
		return cmp.Compare(s.epoch, epoch)
	})
}

// add remembers an end and forgets the oldest past the bound.
func (t *tombstones) add(ref string, epoch uint64, cause Cause) {
	stones := t.byRef[ref]
	at, found := findEpoch(stones, epoch)
	if found {
		return
	}
	t.byRef[ref] = slices.Insert(stones, at, epochStone{epoch: epoch, number: t.next, cause: cause})
	t.order = append(t.order, tombstone{ref, epoch})
	t.next++
	for t.len() > t.limit {
		t.forgetOldest()
	}
}

func (t *tombstones) forgetOldest() {
	old := t.order[t.head]
	t.order[t.head] = tombstone{}
	t.head++
	if t.head*2 > len(t.order) {
		t.order = append([]tombstone(nil), t.order[t.head:]...)
		t.head = 0
	}
	stones := t.byRef[old.ref]
	if at, found := findEpoch(stones, old.epoch); found {
		stones = slices.Delete(stones, at, at+1)
	}
	if len(stones) == 0 {
		delete(t.byRef, old.ref)
		return
	}
	t.byRef[old.ref] = stones
}

// floor is the number of the oldest one that is still remembered after more have
// been added.
func (t *tombstones) floor(more int) uint64 {
	if n := t.next + uint64(more); n > uint64(t.limit) {
		return n - uint64(t.limit)
	}
	return 0
}

// cause is why epoch of ref ended, 0 when none numbered from floor on tells.
func (t *tombstones) cause(ref string, epoch, floor uint64) Cause {
	stones := t.byRef[ref]
	at, found := findEpoch(stones, epoch)
	if !found || stones[at].number < floor {
		return 0
	}
	return stones[at].cause
}

// latest is the highest ended epoch of ref among those numbered from floor on.
func (t *tombstones) latest(ref string, floor uint64) (uint64, bool) {
	stones := t.byRef[ref]
	for i := len(stones) - 1; i >= 0; i-- {
		if stones[i].number >= floor {
			return stones[i].epoch, true
		}
	}
	return 0, false
}
