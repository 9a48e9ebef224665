package table

// Journal keeps a record of what scopes held and why they ended.
type Journal interface {
	// Note is told of one change, its ends before its contents. It is called
	// under the table's lock, so in the order of the changes, and must neither
	// wait nor call the table. What it is given is never changed again: it may be
	// kept.
	Note(ends []End, contents []Content)
}

// End is one session that ended, and why.
type End struct {
	ID    ScopeID
	Cause Cause
}

// tellLocked tells the journal what the batch did.
func (b *batch) tellLocked(contents []Content) {
	if b.t.journal == nil || len(b.ended)+len(contents) == 0 {
		return
	}
	ends := make([]End, len(b.ended))
	for i, s := range b.ended {
		ends[i] = End{ID: s.ID, Cause: s.cause}
	}
	b.t.journal.Note(ends, contents)
}
