package table

import (
	"slices"
	"strings"
)

// OwnerStats is one owner as an operator sees it.
type OwnerStats struct {
	ID         string
	Synced     bool
	Authorized bool
	Authority  *Peer  // nil: free
	Generation uint64 // of the last accepted call, 0 while authority is free
	Live       int
	Deadlines  int
	Tombstones int
}

// ScopeStats is one live scope as an operator sees it. Its record's digest is
// public; whether it asks for a proof is told, the proof's hash never is.
type ScopeStats struct {
	Scope
	Routes  int // live
	Pending int // binds in flight
	Holders int // peers with presence, provisional included
}

// Owners lists the owners that have synced, by id.
func (t *Table) Owners() []OwnerStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []OwnerStats{}
	for _, o := range t.ownersLocked() {
		st := OwnerStats{
			ID: o.id, Synced: o.synced, Authorized: o.authorized,
			Live: len(o.live), Deadlines: len(o.deadlines), Tombstones: o.tombstones.len(),
		}
		if o.authority.held {
			p := o.authority.peer
			st.Authority, st.Generation = &p, o.authority.generation
		}
		list = append(list, st)
	}
	return list
}

// Scopes lists the live scopes of owner, by ref.
func (t *Table) Scopes(owner string) []ScopeStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []ScopeStats{}
	o := t.owners[owner]
	if o == nil {
		return list
	}
	for _, s := range o.live {
		st := ScopeStats{Scope: s.Scope, Holders: len(s.holders)}
		for r := range s.routes {
			if r.live {
				st.Routes++
			} else {
				st.Pending++
			}
		}
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b ScopeStats) int { return strings.Compare(a.ID.Ref, b.ID.Ref) })
	return list
}

// ownersLocked is the owners by id.
func (t *Table) ownersLocked() []*owner {
	list := make([]*owner, 0, len(t.owners))
	for _, o := range t.owners {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *owner) int { return strings.Compare(a.id, b.id) })
	return list
}

// scopesLocked is copies of an owner's live scopes, by ref.
func (o *owner) scopesLocked() []Scope {
	list := make([]*scope, 0, len(o.live))
	for _, s := range o.live {
		list = append(list, s)
	}
	return copies(list)
}

// copies sorts scopes of one owner by ref and copies them.
func copies(list []*scope) []Scope {
	if !slices.IsSortedFunc(list, byRef) {
		slices.SortFunc(list, byRef)
	}
	scopes := make([]Scope, len(list))
	for i, s := range list {
		scopes[i] = s.Scope
	}
	return scopes
}
