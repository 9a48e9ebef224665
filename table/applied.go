package table

// Applied is what an accepted call did.
type Applied struct {
	Op         string
	Generation uint64
	Results    []RecordResult // in request order
	EndResults []EndResult    // of an apply, in request order
	// Ended is every session of the calling owner that the call ended, each ref
	// at most once: the swept first, then the others, both by ref.
	Ended   []ScopeID
	Drains  []Drain  // live routes that must close, by route
	Expired []Expiry // what the call's sweep ended, each a warning

	contents []Content
}

// Content is one accepted content of a scope: it was created, replaced a lower
// epoch, or was updated by its owner.
type Content struct {
	ID      ScopeID
	Outcome Outcome
	Record  *Record
}

// Contents is what the call accepted and the table did not hold before.
func (a *Applied) Contents() []Content { return a.contents }

// ReplyRoom is about how long the reply is, in bytes, and rarely less than it is.
func (a *Applied) ReplyRoom() int {
	const each = 128 // the members' names, and numbers of common size
	n := each * (1 + len(a.EndResults) + len(a.Ended))
	for i := range a.Results {
		n += 96 + len(a.Results[i].Ref) + len(a.Results[i].Message)
	}
	return n
}

// AppendReply appends the reply's body to b. It needs no lock.
func (a *Applied) AppendReply(b []byte) []byte {
	b = append(append(append(b, `{"op":"`...), a.Op...), '"')
	b = appendUint(append(b, `,"generation":`...), a.Generation)
	b = appendArray(append(b, `,"results":`...), a.Results, RecordResult.appendJSON)
	if a.Op == opApply {
		b = appendArray(append(b, `,"end_results":`...), a.EndResults, EndResult.appendJSON)
	}
	if len(a.Ended) > 0 {
		b = appendArray(append(b, `,"ended":`...), a.Ended, appendEnded)
	}
	return append(b, '}')
}

func appendEnded(id ScopeID, b []byte) []byte {
	b = appendString(append(b, `{"ref":`...), id.Ref)
	return append(appendUint(append(b, `,"scope_epoch":`...), id.Epoch), '}')
}
