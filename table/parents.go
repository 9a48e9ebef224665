package table

// linkLocked puts s under its parent.
func (t *Table) linkLocked(s *scope, state ParentState) {
	s.ParentState = state
	parent := s.Record.Parent
	if parent == nil {
		s.ParentState = 0
		return
	}
	if state == Ended {
		return
	}
	insert(t.children, *parent, s)
	if state == Pending {
		insert(t.awaiting, parent.Owner.ModuleID, s)
	}
}

// unlinkLocked takes s from under its parent.
func (t *Table) unlinkLocked(s *scope) {
	if parent := s.Record.Parent; parent != nil {
		remove(t.children, *parent, s)
		remove(t.awaiting, parent.Owner.ModuleID, s)
	}
}

func insert[K comparable](index map[K]map[*scope]struct{}, k K, s *scope) {
	if index[k] == nil {
		index[k] = map[*scope]struct{}{}
	}
	index[k][s] = struct{}{}
}

func remove[K comparable](index map[K]map[*scope]struct{}, k K, s *scope) {
	delete(index[k], s)
	if len(index[k]) == 0 {
		delete(index, k)
	}
}

// settleLocked moves a link to a state that it did not have. Pending to linked
// drains nothing; an ended link drains every route (section 5a). The state does
// not travel further down.
func (b *batch) settleLocked(s *scope, state ParentState) {
	b.t.unlinkLocked(s)
	b.t.linkLocked(s, state)
	b.t.bumpLocked(s)
	b.noteLocked(s)
	if state == Ended {
		b.drainAllLocked(s, ReasonParentEnded)
	}
}

// settleEndedLocked ends the links to the sessions that the batch ended. The
// children stay (section 3).
func (b *batch) settleEndedLocked() {
	for _, parent := range b.ended {
		for _, child := range sorted(b.t.children[parent.ID]) {
			b.settleLocked(child, Ended)
		}
	}
}

// settleAwaitingLocked settles the links that waited for o's first sync: linked
// when the parent is live at the named epoch and permits the link, else ended.
func (b *batch) settleAwaitingLocked(o *owner) {
	waiting := sorted(b.t.awaiting[o.id])
	if len(waiting) == 0 {
		return
	}
	lines := newLineage(b.t.recordLocked)
	for _, child := range waiting {
		parent := child.Record.Parent
		state := Linked
		if checkLink(*parent, child.ID.Owner, b.t.recordLocked).some() ||
			lines.closes(child.ID.Key, child.Record) {
			state = Ended
		}
		b.settleLocked(child, state)
	}
}

// recordLocked is the record live under a key.
func (t *Table) recordLocked(k Key) *Record {
	o := t.owners[k.Owner.ModuleID]
	if o == nil || k.Owner != o.principal {
		return nil
	}
	if s := o.live[k.Ref]; s != nil {
		return s.Record
	}
	return nil
}

// checkLink judges a link to parent from a scope of child, but for cycles,
// among the records that lookup finds. The parent's owner has synced.
func checkLink(parent ScopeID, child Principal, lookup func(Key) *Record) reason {
	rec := lookup(parent.Key)
	switch {
	case rec == nil:
		return reason{code: CodeParentNotPermitted, link: linkAbsent}
	case rec.Epoch != parent.Epoch:
		return reason{code: CodeParentNotPermitted, link: linkEpoch, epoch: rec.Epoch}
	case parent.Owner != child && !rec.ChildOwners.Contains(child):
		return reason{code: CodeParentNotPermitted, link: linkForeign}
	}
	return reason{}
}

// recordLocked is the record that would be live under a key after the call:
// held after the sweep, minus ends that hit, plus accepted records. Other owners
// are not swept.
func (s *staged) recordLocked(k Key) *Record {
	if k.Owner != s.owner.principal {
		return s.t.recordLocked(k)
	}
	if i, named := s.call.index.find(k.Ref); named {
		return s.call.entries[i].next
	}
	if s.call.full {
		return nil
	}
	if i, named := s.call.endIndex.find(k.Ref); named && s.call.ends[i].held != nil {
		return nil
	}
	if held := s.owner.heldAfter(k.Ref, s.now); held != nil {
		return held.Record
	}
	return nil
}

// checkNewLinkLocked judges a record's new link, but for cycles. A parent whose
// owner has not synced yet is pending: a child is never refused for the order in
// which owners come.
func (s *staged) checkNewLinkLocked(e *entry) (ParentState, reason) {
	parent := *e.record.Parent
	if !parent.Owner.Reserved() {
		return 0, reason{code: CodeParentNotPermitted, link: linkOwner}
	}
	if parent.Owner != s.owner.principal {
		if !s.t.syncedLocked(parent.Owner.ModuleID) {
			return Pending, reason{}
		}
	}
	if r := checkLink(parent, s.owner.principal, s.recordLocked); r.some() {
		return 0, r
	}
	return Linked, reason{}
}

// settleNewLinksLocked judges the new links of a call until nothing changes.
// Refusing a record changes what its children in the same call point at, so they
// are judged again; cycles are looked for once every link stands by itself.
func (s *staged) settleNewLinksLocked() {
	w := newLinkWork(s)
	for from := 0; ; {
		for {
			i, some := w.next()
			if !some {
				break
			}
			e := &s.call.entries[i]
			if !e.newLink || e.refused.some() {
				continue
			}
			link, refused := s.checkNewLinkLocked(e)
			if refused.some() {
				w.reject(i, refused)
				continue
			}
			e.link = link
		}
		if w.restored {
			from, w.restored = 0, false
			w.lines.forget()
		}
		i, some := w.firstCycle(from)
		if !some {
			return
		}
		from = i + 1
		if w.lines.looped(s.call.entries[i].record) {
			w.lines.forgetLoops()
		} else {
			w.lines.forget()
		}
		w.reject(i, reason{code: CodeParentNotPermitted, link: linkCycle})
	}
}
