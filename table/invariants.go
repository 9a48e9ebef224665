package table

import "fmt"

// Invariants checks all of the table against itself under the lock and says what
// does not hold, nil for a sound one. It costs a visit of everything: it is for
// tests, and for a sidecar that is built to be watched by one.
func (t *Table) Invariants() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &checkup{t: t, known: map[*scope]struct{}{}, versions: map[uint64]*scope{}}
	for id, o := range t.owners {
		c.owner(id, o)
	}
	for id, r := range t.routes {
		c.route(id, r)
	}
	for at, p := range t.peers {
		c.peer(at, p)
	}
	c.links()
	for s := range c.known {
		c.usage(s)
	}
	return c.broken
}

// checkup is one look at a whole table.
type checkup struct {
	t        *Table
	known    map[*scope]struct{} // live, or held by a route
	versions map[uint64]*scope
	broken   []string
}

// must notes a law that does not hold.
func (c *checkup) must(holds bool, law string, of ...any) {
	if !holds {
		c.broken = append(c.broken, fmt.Sprintf(law, of...))
	}
}

// owner: only who has synced is kept, its authority's peer is joined, what is
// live is of its name and above every epoch that ended.
func (c *checkup) owner(id string, o *owner) {
	_, authorized := c.t.authorized[id]
	c.must(o.id == id && o.principal == ReservedPrincipal(id) && o.authorized == authorized, "owner %q is kept as %q", id, o.id)
	c.must(o.synced, "owner %q never synced and is kept", id)
	if a := o.authority; a.held {
		p := c.t.peers[a.peer]
		c.must(p != nil && p.owner == o, "the authority of %q is %s, which is not joined as it", id, a.peer)
	} else {
		c.must(a == authority{}, "the free authority of %q keeps something", id)
	}
	c.must(len(o.live) <= c.t.limits.LiveScopes, "%q has %d live scopes", id, len(o.live))
	timed := 0
	for ref, s := range o.live {
		c.scope(o, ref, s)
		if s.Record.ExpiresAtMS != nil {
			timed++
			c.must(s.heap >= 0 && s.heap < len(o.deadlines) && o.deadlines[s.heap] == s, "the deadline of %s is not watched", s.ID)
		}
		last, ended := o.tombstones.latest(ref, 0)
		c.must(!ended || last < s.ID.Epoch, "%s is live and %d has ended", s.ID, last)
	}
	c.must(timed == len(o.deadlines), "%q has %d deadlines and watches %d", id, timed, len(o.deadlines))
	for i := 1; i < len(o.deadlines); i++ {
		c.must(!o.deadlines.Less(i, (i-1)/2), "the deadlines of %q are out of order at %d", id, i)
	}
	c.tombstones(o)
}

// tombstones: as many as are allowed, each found by its ref, in order.
func (c *checkup) tombstones(o *owner) {
	ts := &o.tombstones
	c.must(ts.len() <= ts.limit, "%q has %d tombstones", o.id, ts.len())
	n := 0
	for ref, stones := range ts.byRef {
		c.must(len(stones) > 0, "%q keeps an empty list of tombstones for %q", o.id, ref)
		n += len(stones)
		for i, st := range stones {
			c.must(i == 0 || stones[i-1].epoch < st.epoch, "the tombstones of %q are out of order", ref)
			at := int(st.number-ts.next) + len(ts.order)
			c.must(at >= ts.head && at < len(ts.order) && ts.order[at] == tombstone{ref, st.epoch},
				"the tombstone %s@%d is not numbered as it came", ref, st.epoch)
		}
	}
	c.must(n == ts.len(), "%q has %d tombstones by ref and %d by age", o.id, n, ts.len())
}

// scope: a live session is what its record says, under a version of its own.
func (c *checkup) scope(o *owner, ref string, s *scope) {
	c.known[s] = struct{}{}
	c.must(s.ID == ScopeID{Key{o.principal, ref}, s.Record.Epoch} && s.Record.Ref == ref, "%s is live under %q", s.ID, ref)
	c.must(!s.ended && s.cause == 0 && !s.noted, "%s is live and ended or in a batch", s.ID)
	c.must(s.OwnerAuthorized == o.authorized, "%s has another authority than its owner", s.ID)
	c.must(s.Version > 0 && s.Version <= c.t.version && c.versions[s.Version] == nil, "version %d of %s is not its own", s.Version, s.ID)
	c.versions[s.Version] = s
	c.must((s.Record.Parent == nil) == (s.ParentState == 0), "%s has the link %q", s.ID, s.ParentState)
}

// route: it is in every index that names it. One that is live is under a live
// session that lets it in; an ended one has routes in flight only.
func (c *checkup) route(id RouteID, r *route) {
	s := r.scope
	c.known[s] = struct{}{}
	c.must(r.id == id && id <= c.t.lastRoute, "route %d is kept as %d", r.id, id)
	c.must(r.reason == 0, "route %d was drained and is kept", id)
	_, inScope := s.routes[r]
	c.must(inScope, "route %d is not among those of %s", id, s.ID)
	for _, at := range [...]Peer{r.Opener, r.Provider} {
		p := c.t.peers[at]
		c.must(p != nil, "route %d outlives its peer %s", id, at)
		if p != nil {
			_, known := p.routes[r]
			c.must(known, "route %d is not among those of %s", id, at)
		}
	}
	c.must(r.counted != r.Principal.Reserved(), "route %d of %s counts: %t", id, r.Principal, r.counted)
	c.must(r.version > 0 && r.version <= s.Version, "route %d captured version %d of %s", id, r.version, s.ID)
	if !r.live {
		return
	}
	c.must(!r.holding, "route %d is live and its bind still holds", id)
	o := c.t.owners[s.ID.Owner.ModuleID]
	c.must(!s.ended && o != nil && o.live[s.ID.Ref] == s, "route %d outlives %s", id, s.ID)
	c.must(r.Principal == s.ID.Owner || s.Record.Permits(r.Principal, r.Module), "route %d of %s to %s is not permitted by %s", id, r.Principal, r.Module, s.ID)
}

// peer: it holds what is there, and only for itself.
func (c *checkup) peer(at Peer, p *peer) {
	for r := range p.routes {
		c.must(c.t.routes[r.id] == r && (r.Opener == at || r.Provider == at), "%s keeps route %d, which is not its", at, r.id)
	}
	for s := range p.holds {
		c.must(!s.ended && s.holders[at] != nil, "%s keeps the presence of %s", at, s.ID)
	}
	c.must(p.owner == nil || c.t.owners[p.owner.id] == p.owner, "%s speaks for an owner that is not kept", at)
}

// usage: what a session counts is what its routes and its holders are.
func (c *checkup) usage(s *scope) {
	binds, binding := 0, map[Peer]int{}
	for r := range s.routes {
		c.must(c.t.routes[r.id] == r && r.scope == s, "%s keeps route %d, which is gone", s.ID, r.id)
		if r.counted {
			binds++
		}
		if r.holding {
			binding[r.Opener]++
		}
	}
	c.must(binds == s.binds, "%s counts %d binds and has %d", s.ID, s.binds, binds)
	if s.ended {
		return
	}
	c.must(len(s.holders) <= MaxHolders, "%s has %d holders", s.ID, len(s.holders))
	for at, h := range s.holders {
		p := c.t.peers[at]
		c.must(p != nil, "the presence of %s outlives %s", s.ID, at)
		if p != nil {
			_, known := p.holds[s]
			c.must(known, "%s does not know its presence of %s", at, s.ID)
		}
		c.must(h.binding == binding[at] && (h.committed || h.binding > 0), "%s holds %s with %d binds of %d", at, s.ID, h.binding, binding[at])
	}
}

// links: a linked child has a live parent, a pending one waits for an owner that
// has not synced, and no line of linked ones comes back to its beginning.
func (c *checkup) links() {
	t := c.t
	lines := newLineage(t.recordLocked)
	children, awaiting := 0, 0
	for _, o := range t.owners {
		for _, s := range o.live {
			if s.Record.Parent == nil {
				continue
			}
			parent := *s.Record.Parent
			_, child := t.children[parent][s]
			_, waits := t.awaiting[parent.Owner.ModuleID][s]
			c.must(child == (s.ParentState != Ended) && waits == (s.ParentState == Pending), "the link of %s is %s and indexed as %t, %t", s.ID, s.ParentState, child, waits)
			switch s.ParentState {
			case Linked:
				rec := t.recordLocked(parent.Key)
				c.must(rec != nil && rec.Epoch == parent.Epoch, "%s is linked to %s, which is not live", s.ID, parent)
				c.must(!lines.closes(s.ID.Key, s.Record), "%s is its own ancestor", s.ID)
			case Pending:
				c.must(!t.syncedLocked(parent.Owner.ModuleID), "%s waits for %s, whose owner has synced", s.ID, parent)
			}
		}
	}
	for parent, set := range t.children {
		c.must(len(set) > 0, "%s keeps an empty list of children", parent)
		for s := range set {
			children++
			c.must(s.live(t), "the child %s is gone", s.ID)
		}
	}
	for id, set := range t.awaiting {
		c.must(len(set) > 0, "an empty list waits for %q", id)
		awaiting += len(set)
		for s := range set {
			c.must(s.live(t), "%s waits and is gone", s.ID)
		}
	}
	c.must(awaiting <= children, "%d wait of %d children", awaiting, children)
}

// live says whether s is the session under its ref.
func (s *scope) live(t *Table) bool {
	o := t.owners[s.ID.Owner.ModuleID]
	return o != nil && o.live[s.ID.Ref] == s
}
