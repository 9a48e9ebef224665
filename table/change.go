package table

import (
	"fmt"
	"slices"
)

// Sync judges and applies a full set (section 3). now is Unix milliseconds of the
// wall clock. Exactly one of the answers is not nil. The call is used up.
func (t *Table) Sync(c Claim, call *SyncCall, now int64) (*Applied, *Refusal) {
	return t.change(c, &call.call, now)
}

// Apply judges and applies a delta (section 3), as [Table.Sync] does.
func (t *Table) Apply(c Claim, call *ApplyCall, now int64) (*Applied, *Refusal) {
	return t.change(c, &call.call, now)
}

func (t *Table) change(c Claim, call *call, now int64) (*Applied, *Refusal) {
	t.mu.Lock()
	s := staged{t: t, owner: t.ownerLocked(c.Owner), call: call, now: now}
	if refused := s.judgeCallLocked(c); refused != nil {
		t.mu.Unlock()
		return nil, refused
	}
	b := t.beginLocked()
	a := s.commitLocked(c, b)
	t.mu.Unlock()
	b.wake()
	call.recall.keep(call)
	call.explain(a)
	return a, nil
}

// judgeCallLocked runs every whole-call check in the contract's order. It changes
// nothing in the table.
func (s *staged) judgeCallLocked(c Claim) *Refusal {
	if refused := s.t.admitCallLocked(c, s.owner, s.call); refused != nil {
		return refused
	}
	if s.call.body != nil {
		return s.call.body
	}
	s.evaluateLocked()
	if n := s.liveAfterLocked(); n > s.t.limits.LiveScopes {
		return &Refusal{CodeLiveLimitExceeded, fmt.Sprintf("%d scopes would be live, the limit is %d", n, s.t.limits.LiveScopes)}
	}
	return nil
}

// commitLocked makes the staged call the state, in one step with all that follows
// from it.
func (s *staged) commitLocked(c Claim, b *batch) *Applied {
	o := s.owner
	first := !o.synced
	if first {
		o.live = make(map[string]*scope, len(s.call.entries))
	}
	s.t.owners[o.id] = o
	o.synced = true
	s.t.grantLocked(c, o, s.call.generation)

	a := &Applied{
		Op: s.call.op, Generation: s.call.generation,
		Results: s.call.results, EndResults: s.call.endResults,
	}
	a.Expired = b.sweepLocked(s.swept)
	for _, old := range s.endingLocked() {
		b.endLocked(old, CauseOwnerEnded)
	}
	for _, old := range b.ended {
		a.Ended = append(a.Ended, old.ID)
	}
	s.storeLocked(b)
	b.settleEndedLocked()
	if first {
		b.synced = o
		b.settleAwaitingLocked(o)
	}
	a.Drains = b.commitLocked()
	if s.t.journal != nil {
		a.contents = s.call.contents()
		b.tellLocked(a.contents)
	}
	s.reportLocked(b)
	return a
}

// endingLocked is what the owner ends: omitted, named or replaced, by ref.
func (s *staged) endingLocked() []*scope {
	var ending []*scope
	matched := 0
	for i := range s.call.entries {
		e := &s.call.entries[i]
		if e.held == nil {
			continue
		}
		matched++
		if e.next.Epoch != e.held.ID.Epoch {
			ending = append(ending, e.held)
		}
	}
	for i := range s.call.ends {
		if held := s.call.ends[i].held; held != nil {
			ending = append(ending, held)
		}
	}
	// The sweep has run: what is live is what the call's records hold, or more.
	if s.call.full && matched < len(s.owner.live) {
		for ref, held := range s.owner.live {
			if _, named := s.call.index.find(ref); !named {
				ending = append(ending, held)
			}
		}
	}
	slices.SortFunc(ending, byRef)
	return ending
}

// storeLocked puts the accepted records in place, in request order.
func (s *staged) storeLocked(b *batch) {
	for i := range s.call.entries {
		e := &s.call.entries[i]
		out := &s.call.results[i].Outcome
		e.now = e.held
		switch {
		case e.refused.some():
			*out = Refused
		case e.held == nil:
			*out = Created
			e.now = b.createLocked(s.owner, e.record, e.link)
		case e.held.ID.Epoch != e.record.Epoch:
			*out = Replaced
			e.now = b.createLocked(s.owner, e.record, e.link)
		case e.held.Record.same(e.record):
			*out = Unchanged
			continue
		default:
			*out = Updated
			b.updateLocked(e.held, e.record, e.link)
		}
		e.stored = !e.refused.some()
	}
}

// reportLocked reads what the results say of the state after the call. A record
// re-sent unchanged may have moved too, when the call ended its parent.
func (s *staged) reportLocked(b *batch) {
	for i := range s.call.entries {
		live, res := s.call.entries[i].now, &s.call.results[i]
		if live == nil {
			continue
		}
		res.Version, res.ParentState = live.Version, live.ParentState
		if res.Outcome == Unchanged && live.Version > b.since {
			res.Outcome = Updated
		}
	}
}

// explain says what the call needs to say and no lock: the refusals in words, and
// the contents that it stored. Then it lets go of the sessions that it met.
func (c *call) explain(a *Applied) {
	for i := range c.entries {
		if e, res := &c.entries[i], &c.results[i]; e.refused.some() {
			res.Code, res.Message = e.refused.code, e.refused.message(e.record)
		}
	}
	if a.contents == nil {
		a.contents = c.contents()
	}
	clear(c.entries)
	clear(c.ends)
}

// contents is what the call stored.
func (c *call) contents() []Content {
	n := 0
	for i := range c.entries {
		if c.entries[i].stored {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	list := make([]Content, 0, n)
	for i := range c.entries {
		if e := &c.entries[i]; e.stored {
			list = append(list, Content{ID: e.now.ID, Outcome: c.results[i].Outcome, Record: e.record})
		}
	}
	return list
}
