package table

// Scope is a live scope as a judge and the feed see it. Record is shared and
// must not be changed.
type Scope struct {
	ID              ScopeID
	Version         uint64
	Record          *Record
	ParentState     ParentState // 0 exactly when Record.Parent is nil
	OwnerAuthorized bool        // the owner is in scope_authority_owners
}

// Tag is what a bind under s captures.
func (s *Scope) Tag() Tag { return Tag{ScopeID: s.ID, Version: s.Version} }

// scope is one session in the table, from its creation to its end. A route keeps
// the session that it was admitted under: one that has ended never matches again,
// whatever is live under its ref.
type scope struct {
	Scope
	ended  bool
	cause  Cause // of its end
	heap   int   // its place among the owner's deadlines, -1 for none
	routes map[*route]struct{}
	usage
	// noted says that the running batch has the scope among its changes.
	noted bool
}

func newScope(id ScopeID, rec *Record, authorized bool) *scope {
	return &scope{Scope: Scope{ID: id, Record: rec, OwnerAuthorized: authorized}, heap: -1}
}

// owner is everything that one module id registered.
type owner struct {
	id         string
	principal  Principal
	authorized bool // listed in scope_authority_owners
	synced     bool // a full sync was accepted in this incarnation
	authority  authority
	live       map[string]*scope
	deadlines  deadlines
	tombstones tombstones
}

// heldAfter is the session live under ref once the sweep of now has run.
func (o *owner) heldAfter(ref string, now int64) *scope {
	s := o.live[ref]
	if s == nil || s.Record.Passed(now) {
		return nil
	}
	return s
}
