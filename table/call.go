package table

import "fmt"

// MaxEntries is how long either list of a call may be, whatever is live.
const MaxEntries = 10_000

// SyncCall is a decoded scope.sync. It is used for one [Table.Sync].
type SyncCall struct{ call }

// ApplyCall is a decoded scope.apply. It is used for one [Table.Apply].
type ApplyCall struct{ call }

// Generation is the call's.
func (c *call) Generation() uint64 { return c.generation }

// call is a decoded body with everything about it that needs no state.
type call struct {
	op         string
	generation uint64
	entries    []entry
	index      refs           // of entries
	results    []RecordResult // in request order, outcomes still open

	full       bool    // the entries are the owner's whole set
	recall     *recall // where the set is kept once it is accepted, nil for nowhere
	resent     bool    // the set is the one that is kept
	indexed    bool    // index is that of the set that is kept
	ends       []end
	endIndex   refs
	endResults []EndResult

	// body is the refusal that section 3's step 5 has in store, nil for none. It
	// is found while decoding and told in its place.
	body *Refusal
}

// entry is one record of a call, and on its way through the table what became
// of it.
type entry struct {
	record         *Record
	raw            string // as it came, "" where nobody will ask
	recalled       bool   // an accepted call of the owner's held it
	last           *scope // live under the ref after that call, nil for none
	onlyIfIdle     bool
	targetsInvalid bool // a carrier's list of targets is out of bounds
	contradiction  Code // of its attributes, whoever the owner is

	held    *scope      // live under the ref after the sweep, nil for none
	next    *Record     // what stands under the ref after the call, nil for nothing
	refused reason      // zero: accepted
	newLink bool        // the record names a parent that its held link does not
	link    ParentState // what the new link settled to
	now     *scope      // live under the ref after the call, nil for none
	stored  bool        // the record is content that was not held before
}

// end is one exact session to end.
type end struct {
	ref   string
	epoch uint64
	held  *scope // the session, when it is live after the sweep
}

// seal finishes decoding: the indexes, the room for results, and the checks of
// section 3's step 5. They run in the router's order: the list's length, then
// record by record its ref, repeats, tokens and bytes, then the ends.
func (c *call) seal() {
	c.results = make([]RecordResult, len(c.entries))
	if !c.indexed {
		c.index = newRefs(len(c.entries))
	}
	if len(c.entries) > MaxEntries {
		c.refuse(CodeLiveLimitExceeded, "the call lists %d records, the limit is %d", len(c.entries), MaxEntries)
	}
	for i := range c.entries {
		rec := c.entries[i].record
		c.results[i].Ref, c.results[i].Epoch = rec.Ref, rec.Epoch
		if !c.indexed && !c.index.add(rec.Ref) {
			c.refuse(CodeInvalidControlBody, "ref %s is in the call twice", QuoteName(rec.Ref))
		}
		if !c.entries[i].recalled {
			c.checkRecord(rec)
		}
	}
	if len(c.ends) > MaxEntries {
		c.refuse(CodeLiveLimitExceeded, "the call lists %d ends, the limit is %d", len(c.ends), MaxEntries)
	}
	c.endResults = make([]EndResult, len(c.ends))
	c.endIndex = newRefs(len(c.ends))
	for i, e := range c.ends {
		c.endResults[i] = EndResult{Ref: e.ref, Epoch: e.epoch}
		_, upserted := c.index.find(e.ref)
		repeated := !c.endIndex.add(e.ref)
		switch {
		case e.ref == "":
			c.refuse(CodeInvalidControlBody, "a ref is empty")
		case upserted || repeated:
			c.refuse(CodeInvalidControlBody, "ref %s is in the call twice", QuoteName(e.ref))
		}
	}
}

func (c *call) checkRecord(rec *Record) {
	a := rec.Attributes
	if rec.Ref == "" {
		c.refuse(CodeInvalidControlBody, "a ref is empty")
	}
	if a.FlowID != nil && !isToken(*a.FlowID) {
		c.refuse(CodeInvalidControlBody, "flow_id of ref %s is not 1 to %d printable ASCII characters without spaces", QuoteName(rec.Ref), maxToken)
	}
	if a.RunID != nil && !isToken(*a.RunID) {
		c.refuse(CodeInvalidControlBody, "run_id of ref %s is not 1 to %d printable ASCII characters without spaces", QuoteName(rec.Ref), maxToken)
	}
	var room [canonicalRoom]byte
	if n := len(a.appendJSON(room[:0])); n > MaxAttributeBytes {
		c.refuse(CodeAttributesTooLarge, "the attributes of ref %s take %d bytes, the limit is %d", QuoteName(rec.Ref), n, MaxAttributeBytes)
	}
}

// refuse keeps the first refusal.
func (c *call) refuse(code Code, format string, args ...any) {
	if c.body == nil {
		c.body = &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
	}
}
