package ledger

import (
	"go.etcd.io/bbolt"

	"scopeward/table"
)

// Proof is what the ledger says of one session, with what it takes to check that
// by hand: prefix_sha256 of each entry follows from the prefix before it, and the
// chain from there to the head was checked.
type Proof struct {
	ID     table.ScopeID `json:"-"`
	Steps  []*Step       `json:"steps"` // in order; none: nothing is known of the session
	Report *Report       `json:"report"`
}

// Step is one entry and the prefix that it follows.
type Step struct {
	Entry
	Previous table.Digest
}

// Prove looks for a session and verifies the ledger on the way.
func (v *View) Prove(id table.ScopeID) (*Proof, error) {
	p := &Proof{ID: id, Report: &Report{}}
	return p, v.read(func(tx *bbolt.Tx) error {
		return p.Report.verify(tx, func(e *Entry, previous table.Digest) {
			if e.ID == id {
				p.Steps = append(p.Steps, &Step{*e, previous})
			}
		})
	})
}
