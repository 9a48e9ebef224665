package proxy

import "scopeward/table"

// Journal keeps a record of what scopes held. It never changes a decision.
type Journal interface {
	table.Journal
	// Settle waits until what was noted before is safe on disk, and no longer than
	// a bound of its own.
	Settle()
}

// settle keeps back the answer to an accepted call until the journal is safe, or
// its bound has passed. Its drains do not wait for it.
func (w *World) settle() {
	if w.journal != nil {
		w.journal.Settle()
	}
}
