package table

import (
	"cmp"
	"fmt"
	"strings"
)

// Kind is what a scope stands for. It is closed, and fixed for the life of an
// epoch (section 2).
type Kind uint8

// The kinds.
const (
	Head Kind = iota + 1
	Worker
	Ephemeral
)

var kinds = [...]string{Head: "head", Worker: "worker", Ephemeral: "ephemeral"}

// String is the kind's wire name, "" for the zero value.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return ""
}

// ParentState is the state of a parent link (section 2).
type ParentState uint8

const (
	// Linked says that the parent is live at the named epoch and permits the link.
	Linked ParentState = iota + 1
	// Pending says that the parent's owner has not synced in this incarnation.
	// The link grants nothing.
	Pending
	// Ended says that the parent is gone, live at another epoch, or does not
	// permit the link. It is final for this link.
	Ended
)

var parentStates = [...]string{Linked: "linked", Pending: "pending", Ended: "ended"}

// String is the state's wire name, "" for a scope without a parent.
func (s ParentState) String() string {
	if int(s) < len(parentStates) {
		return parentStates[s]
	}
	return ""
}

// ModuleID names a module of the router.
type ModuleID string

// Compare orders module ids by their bytes.
func (m ModuleID) Compare(n ModuleID) int { return strings.Compare(string(m), string(n)) }

// Carrier is one entry of a record's carriers: a principal, other than the
// owner, that may open routes under the scope.
type Carrier struct {
	Principal Principal
	// Targeted entries reach the modules in Targets only, 1 to [MaxCarrierTargets]
	// of them. A bare entry reaches every module.
	Targeted bool
	Targets  Set[ModuleID]
}

// Compare orders carriers by principal, bare before targeted, then by targets.
func (c Carrier) Compare(d Carrier) int {
	targeted := 0
	if c.Targeted != d.Targeted {
		targeted = 1
		if d.Targeted {
			targeted = -1
		}
	}
	return cmp.Or(c.Principal.Compare(d.Principal), targeted, c.Targets.Compare(d.Targets))
}

// ProofHash is the SHA-256 of a scope's bind proof. It is a secret: it prints as
// a placeholder and has no JSON form.
type ProofHash [32]byte

// Format prints a placeholder under every verb.
func (ProofHash) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[redacted]")) }

// Attributes are the fields that grant authority. Only an owner listed in
// scope_authority_owners may set any of them (section 2, authority gate).
type Attributes struct {
	AgentID   *string
	Delegates bool
	FlowID    *string
	RunID     *string
}

// Empty says whether no attribute is set.
func (a Attributes) Empty() bool {
	return a.AgentID == nil && !a.Delegates && a.FlowID == nil && a.RunID == nil
}

// Record is a scope's content as its owner sent it. It is never changed after
// decoding and may be shared.
type Record struct {
	Ref         string
	Epoch       uint64
	Kind        Kind
	BindProof   *ProofHash // nil: no proof is asked for
	ExpiresAtMS *uint64    // Unix milliseconds; nil: never
	Parent      *ScopeID   // nil: none
	ChildOwners Set[Principal]
	Carriers    Set[Carrier]
	Attributes  Attributes

	digest Digest
}

// Digest is a record's identity: SHA-256 over its canonical form, which leaves
// the bind proof's hash out.
type Digest [32]byte

// Permits says whether p, which is not the owner, may open a route to module.
// Several entries of one principal add up.
func (r *Record) Permits(p Principal, module string) bool {
	return r.allowance(p).permits(ModuleID(module))
}

// Deadline says whether the record has one that is at or before now.
func (r *Record) Passed(now int64) bool {
	return r.ExpiresAtMS != nil && now >= 0 && *r.ExpiresAtMS <= uint64(now)
}

// Scope is a live scope as a judge and describe see it.
type Scope struct {
	ID              ScopeID
	Version         uint64
	Record          *Record
	ParentState     ParentState // 0 exactly when Record.Parent is nil
	OwnerAuthorized bool
}

// Tag is what a bind under s captures.
func (s *Scope) Tag() Tag { return Tag{ScopeID: s.ID, Version: s.Version} }
