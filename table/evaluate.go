package table

import "slices"

// staged is one call beside the state that it is judged against. Nothing of it
// is in the table until every whole-call check has passed; forgetting it is the
// whole of a refusal. Its size is the call's, not the owner's.
type staged struct {
	t     *Table
	owner *owner
	call  *call
	now   int64
	swept []*scope // of the calling owner, by ref
	floor uint64   // of the tombstones that the sweep leaves
	links bool     // some record has a new link
	hits  int      // ends of a live session
}

// evaluateLocked judges every record and end of the call against the state that
// the sweep leaves.
func (s *staged) evaluateLocked() {
	s.swept = s.owner.deadlines.passed(s.now)
	s.floor = s.owner.tombstones.floor(len(s.swept))
	for i := range s.call.ends {
		e := &s.call.ends[i]
		e.held = s.owner.heldAfter(e.ref, s.now)
		if e.held != nil && e.held.ID.Epoch != e.epoch {
			e.held = nil
		}
		if e.held != nil {
			s.hits++
		}
		s.call.endResults[i].Ended = e.held != nil
	}
	for i := range s.call.entries {
		e := &s.call.entries[i]
		e.held = s.heldLocked(e)
		e.newLink = e.record.Parent != nil &&
			(e.held == nil || e.held.ID.Epoch != e.record.Epoch || !e.held.Record.sameParent(e.record))
		e.refused = s.judgeLocked(e)
		if e.refused.some() {
			e.fallBack()
			continue
		}
		e.next = e.record
		s.links = s.links || e.newLink
	}
	if s.links {
		s.settleNewLinksLocked()
	}
}

// heldLocked is the session live under e's ref once the sweep has run. A session
// that was live after an earlier call and has not ended is live still.
func (s *staged) heldLocked(e *entry) *scope {
	if e.last == nil || e.last.ended {
		return s.owner.heldAfter(e.record.Ref, s.now)
	}
	if e.last.Record.Passed(s.now) {
		return nil
	}
	return e.last
}

// fallBack leaves what was held before the record in place.
func (e *entry) fallBack() {
	e.next = nil
	if e.held != nil {
		e.next = e.held.Record
	}
}

// judgeLocked runs the checks that a record passes or fails on its own, in the
// router's order. Its parent comes later.
func (s *staged) judgeLocked(e *entry) reason {
	rec := e.record
	switch {
	case e.targetsInvalid:
		return reason{code: CodeCarrierTargetsInvalid}
	case !s.owner.authorized && !rec.Attributes.Empty():
		return reason{code: CodeAttributeNotPermitted}
	case e.contradiction != "":
		return reason{code: e.contradiction}
	}
	if e.held != nil && e.held.ID.Epoch == rec.Epoch {
		return judgeSameEpoch(e)
	}
	if cause := s.endedLocked(rec); cause != 0 {
		if cause == CauseExpired {
			return reason{code: CodeExpired}
		}
		return reason{code: CodeEpochEnded}
	}
	if last, some := s.lastEpochLocked(e); some && rec.Epoch < last {
		return reason{code: CodeEpochRegressed, epoch: last}
	}
	if rec.Passed(s.now) {
		return reason{code: CodeExpired}
	}
	if rec.ExpiresAtMS != nil && *rec.ExpiresAtMS-unsigned(s.now) > MaxExpiryAheadMS {
		return reason{code: CodeExpiryTooFar}
	}
	return e.judgeIdle()
}

func judgeSameEpoch(e *entry) reason {
	held := e.held.Record
	switch {
	case e.record.Kind != held.Kind:
		return reason{code: CodeKindChanged}
	case !equal(e.record.ExpiresAtMS, held.ExpiresAtMS):
		return reason{code: CodeExpiryImmutable}
	case !equal(e.record.BindProof, held.BindProof):
		return e.judgeIdle()
	}
	return reason{}
}

// judgeIdle refuses a conditional replacement, or change of proof, of an epoch
// that is in use (section 4).
func (e *entry) judgeIdle() reason {
	if e.onlyIfIdle && e.held != nil && !e.held.idle() {
		return reason{code: CodeEpochInUse}
	}
	return reason{}
}

// endedLocked is why rec's epoch ended, 0 for never: by the sweep of this call,
// in memory, or where the caller remembers.
func (s *staged) endedLocked(rec *Record) Cause {
	if epoch, found := s.sweptEpochLocked(rec.Ref); found && epoch == rec.Epoch {
		return CauseExpired
	}
	if c := s.owner.tombstones.cause(rec.Ref, rec.Epoch, s.floor); c != 0 {
		return c
	}
	if s.t.remembered == nil {
		return 0
	}
	// The reader has not been told yet of what this call sweeps.
	if held := s.owner.live[rec.Ref]; held != nil && held.ID.Epoch == rec.Epoch && held.Record.Passed(s.now) {
		return CauseExpired
	}
	if c, found := s.t.remembered.Cause(ScopeID{Key{s.owner.principal, rec.Ref}, rec.Epoch}); found {
		return c
	}
	return 0
}

// lastEpochLocked is the epoch below which the ref may not fall: the live one,
// the one that this call's sweep ends, else the highest ended one that is
// remembered. A live epoch is above all that are.
func (s *staged) lastEpochLocked(e *entry) (uint64, bool) {
	if e.held != nil {
		return e.held.ID.Epoch, true
	}
	if epoch, found := s.sweptEpochLocked(e.record.Ref); found {
		return epoch, true
	}
	return s.owner.tombstones.latest(e.record.Ref, s.floor)
}

// sweptEpochLocked is the epoch of ref that the sweep of this call ends. The
// bound on tombstones holds within one sweep too: the first of many are forgotten.
func (s *staged) sweptEpochLocked(ref string) (uint64, bool) {
	held := s.owner.live[ref]
	if len(s.swept) == 0 || held == nil || !held.Record.Passed(s.now) {
		return 0, false
	}
	at, found := slices.BinarySearchFunc(s.swept, held, byRef)
	if !found || s.owner.tombstones.next+uint64(at) < s.floor {
		return 0, false
	}
	return held.ID.Epoch, true
}

// liveAfterLocked is how many live scopes the owner would have after the call.
func (s *staged) liveAfterLocked() int {
	n := 0
	if !s.call.full {
		n = len(s.owner.live) - len(s.swept) - s.hits
	}
	for i := range s.call.entries {
		if e := &s.call.entries[i]; e.next != nil && (s.call.full || e.held == nil) {
			n++
		}
	}
	return n
}
