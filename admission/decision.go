package admission

import "scopeward/table"

// Verdict is a decision's outcome.
type Verdict uint8

const (
	// Refused says that nothing is reserved and nothing reaches the module.
	Refused Verdict = iota
	// Admitted says that the bind may go to the module, stamped.
	Admitted
	// NeedRoster says that the owner has not synced and that only the router's
	// roster tells what that means. Nothing is reserved: ask again with
	// [Ask.Roster] set.
	NeedRoster
)

// String is the verdict for the operator's eye.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case NeedRoster:
		return "roster needed"
	}
	return "refused"
}

// Roster is what the router's roster says of a scope's owner. It is consulted
// only for an owner that has not synced in this incarnation: one that has is
// configured.
type Roster uint8

const (
	// Unknown says that the router has not been asked.
	Unknown Roster = iota
	// Configured says that the owner is in the supervisor's module map, disabled
	// modules included (section 11).
	Configured
	// NotConfigured says that it is not, so that it will never sync.
	NotConfigured
)

// Ask is one bind to decide about.
type Ask struct {
	Selector     Selector
	Opener       table.Peer
	Principal    table.Principal // the router's attestation on the bind, never a claim
	Module       string          // target module id
	Provider     table.Peer      // the registration that the bind is on
	Capabilities Capabilities    // what that registration declares at this moment
	Now          int64           // Unix milliseconds, wall clock
	Roster       Roster
}

// Decision is what became of an [Ask]. The zero value is a refusal.
type Decision struct {
	Verdict Verdict
	Code    Code   // the refusal's, "" otherwise
	Rule    string // the section and name of the rule that decided
	Message string // the refusal in words, fit for the opener and for a log
	// Digest is of the record that was live under the ref, zero without one.
	Digest table.Digest

	// Of an admitted bind only.

	Route table.RouteID // 0 from [Explain]
	Tag   table.Tag     // what [Commit] compares
	Stamp []byte        // the bind's scope member
	Mode  CallMode      // the bind's call_mode, "" for a target that is no declarer
}
