package table

// Outcome is what a call did with one record.
type Outcome uint8

const (
	// Created says that the ref was not live and now is.
	Created Outcome = iota + 1
	// Replaced says that a lower epoch of the ref ended and this one began.
	Replaced
	// Updated says that the content, or the state of the parent link, changed.
	Updated
	// Unchanged says that nothing moved.
	Unchanged
	// Refused says that the record was refused on its own merits and that what
	// was held before it stands.
	Refused
)

var outcomes = [...]string{Created: "created", Replaced: "replaced", Updated: "updated", Unchanged: "unchanged", Refused: "refused"}

// String is the outcome's wire name.
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return ""
}

// RecordResult is what a call did with one record.
type RecordResult struct {
	Ref     string
	Epoch   uint64 // as the record named it
	Outcome Outcome
	Code    Code   // of a refusal, else ""
	Message string // of a refusal, else ""
	// Version is of the scope live under the ref after the call, 0 for none.
	Version uint64
	// ParentState is of the same scope, 0 without one or without a parent.
	ParentState ParentState
}

func (r RecordResult) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"ref":`...), r.Ref)
	b = appendUint(append(b, `,"scope_epoch":`...), r.Epoch)
	b = append(b, `,"outcome":"`...)
	b = append(append(b, r.Outcome.String()...), '"')
	if r.Outcome == Refused {
		b = appendString(append(b, `,"code":`...), string(r.Code))
		b = appendString(append(b, `,"message":`...), r.Message)
	}
	if r.Version != 0 {
		b = appendUint(append(b, `,"version":`...), r.Version)
	}
	if r.ParentState != 0 {
		b = append(b, `,"parent_state":"`...)
		b = append(append(b, r.ParentState.String()...), '"')
	}
	return append(b, '}')
}

// EndResult is what an apply did with one end.
type EndResult struct {
	Ref   string
	Epoch uint64
	Ended bool // false: not_live, which is no error
}

func (r EndResult) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"ref":`...), r.Ref)
	b = appendUint(append(b, `,"scope_epoch":`...), r.Epoch)
	if r.Ended {
		return append(b, `,"outcome":"ended"}`...)
	}
	return append(b, `,"outcome":"not_live"}`...)
}
