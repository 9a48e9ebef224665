package table

// Reservation is what [Table.Reserve] would hold.
type Reservation struct {
	Scope     Key
	Opener    Peer      // the connection whose open it is
	Principal Principal // whom the router stamped on the bind
	Module    string    // the target's module id
	Provider  Peer      // the registration whose connection captured the bind
	Hold      bool      // hold_presence
}

// State is what the table holds for one key, as a judge sees it under the lock.
// A judge must neither keep nor change it.
type State struct {
	Synced bool   // the owner has synced in this incarnation
	Live   *Scope // nil: no live record
}

// route is one admitted bind: in flight until its commit, then live.
type route struct {
	id      RouteID
	scope   *scope // the session that it was admitted under
	version uint64 // captured
	Reservation
	live    bool
	counted bool   // it keeps the epoch in use
	holding bool   // its bind has a part in the opener's presence
	reason  Reason // why the running batch drains it, 0 for not at all
}

// Verdict is what became of a commit. The zero value is a refusal.
type Verdict uint8

const (
	// Gone says that the reservation was released before, or never was.
	Gone Verdict = iota
	// Committed says that the route is live and in the index.
	Committed
	// StaleEnded says that the scope ended: refuse with [CodeScopeEnded].
	StaleEnded
	// StaleChanged says that the record changed: refuse with [CodeScopeChanged].
	StaleChanged
)

// Code is the refusal's, "" for a verdict that is none or has none.
func (v Verdict) Code() Code {
	switch v {
	case StaleEnded:
		return CodeScopeEnded
	case StaleChanged:
		return CodeScopeChanged
	}
	return ""
}

// Reserve runs judge under the lock. When it admits and both peers are joined,
// the epoch's usage is reserved, provisional presence with it, and the tag
// captured, all in that one step. Judge must be pure and quick.
func (t *Table) Reserve(r Reservation, judge func(State) bool) (RouteID, Tag, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var st State
	var s *scope
	if o := t.owners[r.Scope.Owner.ModuleID]; o != nil && r.Scope.Owner == o.principal {
		st.Synced = o.synced
		if s = o.live[r.Scope.Ref]; s != nil {
			st.Live = &s.Scope
		}
	}
	admitted := judge(st)
	opener, provider := t.peers[r.Opener], t.peers[r.Provider]
	if !admitted || s == nil || opener == nil || provider == nil {
		return 0, Tag{}, false
	}
	t.lastRoute++
	rt := &route{id: t.lastRoute, scope: s, version: s.Version, Reservation: r}
	if !r.Principal.Reserved() {
		rt.counted = true
		s.binds++
		if rt.holding = r.Hold && s.hold(r.Opener); rt.holding {
			opener.holds[s] = struct{}{}
		}
	}
	if s.routes == nil {
		s.routes = map[*route]struct{}{}
	}
	t.routes[rt.id] = rt
	s.routes[rt] = struct{}{}
	opener.routes[rt] = struct{}{}
	provider.routes[rt] = struct{}{}
	return rt.id, s.Tag(), true
}

// Commit compares the captured tag with the record's and in the same step makes
// the route live (section 4, commit). A stale one is released.
func (t *Table) Commit(id RouteID) Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.routes[id]
	switch {
	case r == nil || r.live:
		return Gone
	case r.scope.ended:
		t.removeRouteLocked(r)
		return StaleEnded
	case r.scope.Version != r.version:
		t.removeRouteLocked(r)
		return StaleChanged
	}
	r.live = true
	if r.holding {
		r.holding = false
		r.scope.settle(r.Opener, true)
	}
	return Committed
}

// Release ends a reservation or a live route. It says whether there was one: a
// route that was drained, released or left before is gone. Presence of a committed
// bind stays.
func (t *Table) Release(id RouteID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.routes[id]
	if r == nil {
		return false
	}
	t.removeRouteLocked(r)
	return true
}

// removeRouteLocked takes r out of every index and gives back what it reserved.
func (t *Table) removeRouteLocked(r *route) {
	delete(t.routes, r.id)
	delete(r.scope.routes, r)
	for _, p := range [...]Peer{r.Opener, r.Provider} {
		if joined := t.peers[p]; joined != nil {
			delete(joined.routes, r)
		}
	}
	if r.counted {
		r.scope.binds--
	}
	if r.holding && !r.scope.settle(r.Opener, false) {
		if opener := t.peers[r.Opener]; opener != nil {
			delete(opener.holds, r.scope)
		}
	}
}
