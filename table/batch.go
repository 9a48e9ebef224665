package table

import (
	"slices"
	"strings"
)

// batch is one change of the table while it is being committed. Everything in it
// happens in one locked step: new tags, the drains that they cause, the events.
type batch struct {
	t        *Table
	since    uint64 // the last version before the batch
	ended    []*scope
	created  []*scope
	changed  []*scope
	synced   *owner // whose first sync it is, nil for none
	draining []*route
	// publishes says that the batch put events into the feed.
	publishes bool
}

func (t *Table) beginLocked() *batch { return &batch{t: t, since: t.version} }

// noteLocked puts s among the changes that readers are told of.
func (b *batch) noteLocked(s *scope) {
	if !s.noted {
		s.noted = true
		b.changed = append(b.changed, s)
	}
}

// sweepLocked ends sessions that passed their deadlines.
func (b *batch) sweepLocked(passed []*scope) []Expiry {
	var expired []Expiry
	for _, s := range passed {
		n := b.endLocked(s, CauseExpired)
		expired = append(expired, Expiry{ID: s.ID, Deadline: *s.Record.ExpiresAtMS, Routes: n, Digest: s.Record.Digest()})
	}
	return expired
}

// endLocked ends a session: its tombstone, its routes, its presence and its own
// link. Its children are settled later, when the whole change stands. It counts
// the routes drained.
func (b *batch) endLocked(s *scope, cause Cause) int {
	o := b.t.owners[s.ID.Owner.ModuleID]
	delete(o.live, s.ID.Ref)
	o.deadlines.remove(s)
	o.tombstones.add(s.ID.Ref, s.ID.Epoch, cause)
	b.t.unlinkLocked(s)
	for p := range s.holders {
		if joined := b.t.peers[p]; joined != nil {
			delete(joined.holds, s)
		}
	}
	s.ended, s.cause = true, cause
	b.ended = append(b.ended, s)
	return b.drainAllLocked(s, ReasonScopeEnded)
}

// createLocked begins a session.
func (b *batch) createLocked(o *owner, rec *Record, link ParentState) *scope {
	s := newScope(ScopeID{Key{o.principal, rec.Ref}, rec.Epoch}, rec, o.authorized)
	o.live[rec.Ref] = s
	o.deadlines.add(s)
	b.t.linkLocked(s, link)
	b.t.bumpLocked(s)
	b.created = append(b.created, s)
	return s
}

// updateLocked gives a live session another content at the same epoch. A link of
// 0 keeps the link's state.
func (b *batch) updateLocked(s *scope, rec *Record, link ParentState) {
	before := s.Record
	if link == 0 && rec.Parent != nil {
		s.Record = rec
	} else {
		b.t.unlinkLocked(s)
		s.Record = rec
		b.t.linkLocked(s, link)
	}
	b.t.bumpLocked(s)
	b.drainChangeLocked(s, before)
	if !before.sameParent(rec) ||
		!before.Carriers.Equal(rec.Carriers) ||
		!before.Attributes.sameIdentity(rec.Attributes) ||
		before.Attributes.Delegates != rec.Attributes.Delegates {
		b.noteLocked(s)
	}
}

// commitLocked publishes the batch's events and takes its drains.
func (b *batch) commitLocked() []Drain {
	drains := b.takeDrainsLocked()
	b.publishLocked()
	return drains
}

func byRef(a, b *scope) int { return strings.Compare(a.ID.Ref, b.ID.Ref) }

func sorted(set map[*scope]struct{}) []*scope {
	list := make([]*scope, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *scope) int { return a.ID.Compare(b.ID) })
	return list
}
