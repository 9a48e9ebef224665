package table

import "fmt"

// Claim is what is known of the connection that a call came on. A registration
// has one owner as long as it lasts.
type Claim struct {
	Peer   Peer
	Owner  string // the registration's module_id
	Launch Launch // whose nonce the connection presented
	// Current says that the launch is the owner's current one: the one whose
	// nonce the supervisor records as the module's (section 11).
	Current bool
}

// authority is the one connection whose syncs are accepted for an owner. The
// zero value is nobody's.
type authority struct {
	held       bool
	peer       Peer
	launch     Launch
	generation uint64 // of the last accepted call
}

// authorizeLocked judges whether c may sync for o, and whether doing so takes
// authority. A later launch takes it from an earlier one's connection that is
// still open; two connections of one launch are ordered by nothing.
func (t *Table) authorizeLocked(c Claim, o *owner) (taking bool, refused *Refusal) {
	switch {
	case !c.Current || t.peers[c.Peer] == nil:
		return false, &Refusal{CodeSyncNotAuthority, "the connection is not of the owner's current launch"}
	case !o.authority.held:
		return true, nil
	case o.authority.peer == c.Peer:
		return false, nil
	case o.authority.launch == c.Launch:
		return false, &Refusal{CodeSyncNotAuthority, "another connection of this launch has the authority"}
	}
	return true, nil
}

// admitCallLocked runs the checks that come before the body's: authority, and
// for an apply that it follows a full sync, then the generation (section 3).
func (t *Table) admitCallLocked(c Claim, o *owner, call *call) *Refusal {
	taking, refused := t.authorizeLocked(c, o)
	if refused != nil {
		return refused
	}
	if taking && !call.full {
		return &Refusal{CodeSyncRequired, "a full scope.sync of this connection must come first"}
	}
	if last := o.authority.generation; !taking && call.generation <= last {
		return &Refusal{CodeSyncStale, fmt.Sprintf("generation %d is not larger than %d", call.generation, last)}
	}
	return nil
}

// grantLocked records an accepted call.
func (t *Table) grantLocked(c Claim, o *owner, generation uint64) {
	o.authority = authority{held: true, peer: c.Peer, launch: c.Launch, generation: generation}
	t.peers[c.Peer].owner = o
}
