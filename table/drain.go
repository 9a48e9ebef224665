package table

import (
	"cmp"
	"slices"
)

// Reason is why a live route is drained. The values are in the order of section
// 11: of several reasons the highest is told.
type Reason uint8

const (
	// ReasonCarrierRemoved says that the opener may no longer open to the module.
	ReasonCarrierRemoved Reason = iota + 1
	// ReasonDelegationChanged says that the identity on the stamp changed.
	ReasonDelegationChanged
	// ReasonParentEnded says that the link to the parent ended.
	ReasonParentEnded
	// ReasonScopeEnded says that the scope ended.
	ReasonScopeEnded
)

var reasons = [...]string{
	ReasonCarrierRemoved:    "scope_carrier_removed",
	ReasonDelegationChanged: "scope_delegation_changed",
	ReasonParentEnded:       "scope_parent_ended",
	ReasonScopeEnded:        "scope_ended",
}

// String is the reason as a route.closed push has it.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return ""
}

// Drain is one live route that must close. The table has taken it out already:
// releasing it again does nothing.
type Drain struct {
	Route     RouteID
	Opener    Peer
	Principal Principal // the opener's
	Module    string    // the target's module id
	Scope     ScopeID
	Digest    Digest // of the scope's record, as it is now
	Reason    Reason
}

// drainAllLocked drains every live route of s and counts them. A bind in flight
// is not drained: its commit finds its tag stale.
func (b *batch) drainAllLocked(s *scope, why Reason) (n int) {
	for r := range s.routes {
		if r.live {
			b.drainLocked(r, why)
			n++
		}
	}
	return n
}

func (b *batch) drainLocked(r *route, why Reason) {
	if r.reason == 0 {
		b.draining = append(b.draining, r)
	}
	r.reason = max(r.reason, why)
}

// drainChangeLocked drains what a change of s from before to its present record
// takes authority from (section 5a). A change that only adds drains nothing.
func (b *batch) drainChangeLocked(s *scope, before *Record) {
	was, is := before.Attributes, s.Record.Attributes
	if !was.sameIdentity(is) || (was.Delegates && !is.Delegates) {
		b.drainAllLocked(s, ReasonDelegationChanged)
	}
	if before.Carriers.Equal(s.Record.Carriers) {
		return
	}
	for r := range s.routes {
		// Every live route was permitted by the record before this one.
		if r.live && r.Principal != s.ID.Owner && !s.Record.Permits(r.Principal, r.Module) {
			b.drainLocked(r, ReasonCarrierRemoved)
		}
	}
}

// takeDrainsLocked takes the drained routes out of the index, by route.
func (b *batch) takeDrainsLocked() []Drain {
	slices.SortFunc(b.draining, func(r, s *route) int { return cmp.Compare(r.id, s.id) })
	drains := make([]Drain, len(b.draining))
	for i, r := range b.draining {
		drains[i] = Drain{
			Route: r.id, Opener: r.Opener, Principal: r.Principal, Module: r.Module,
			Scope: r.scope.ID, Digest: r.scope.Record.Digest(), Reason: r.reason,
		}
		b.t.removeRouteLocked(r)
	}
	return drains
}
