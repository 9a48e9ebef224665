package ledger

import "scopeward/table"

// Reason is why an entry was appended.
type Reason uint8

const (
	// Created says that the ref was not live.
	Created Reason = iota + 1
	// Replaced says that a lower epoch of the ref ended for it.
	Replaced
	// Updated says that the content of a scope changed.
	Updated
	// Imported says that the entry was written elsewhere.
	Imported
	// Canonicalized says that the content is as it was, and that it had been
	// hashed unsorted (ADR-0134, decision 9).
	Canonicalized
	// Ended says that the scope ended. The entry has a cause.
	Ended
)

var reasons = [...]string{
	Created: "created", Replaced: "replaced", Updated: "updated", Imported: "imported",
	Canonicalized: "prefix_hash_canonicalized", Ended: "ended",
}

// String is the reason's name in entries, "" for the zero value.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return ""
}

func parseReason(s string) Reason {
	for r := Created; r <= Ended; r++ {
		if s == reasons[r] {
			return r
		}
	}
	return 0
}

func parseCause(s string) table.Cause {
	for c := table.CauseExpired; c <= table.CauseOwnerEnded; c++ {
		if s == c.String() {
			return c
		}
	}
	return 0
}

// reasonOf is why a content was accepted.
func reasonOf(o table.Outcome) Reason {
	switch o {
	case table.Replaced:
		return Replaced
	case table.Updated:
		return Updated
	}
	return Created
}
