package table

// MaxAttributeBytes is how large a record's attributes may be as compact JSON.
const MaxAttributeBytes = 4 << 10

// maxToken is the longest flow_id and run_id, in bytes.
const maxToken = 256

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

// sameIdentity says whether no route that b was stamped on outlives a change to
// it: the identities are equal and delegates was not turned off (section 5a).
func (a Attributes) sameIdentity(b Attributes) bool {
	return equal(a.AgentID, b.AgentID) && equal(a.FlowID, b.FlowID) && equal(a.RunID, b.RunID)
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// contradiction is the first rule of section 2 that a breaks on its own, "" for
// none.
func (a Attributes) contradiction() Code {
	switch {
	case a.Delegates && a.AgentID == nil:
		return CodeDelegatesWithoutAgent
	case a.RunID != nil && a.AgentID == nil:
		return CodeRunIDWithoutAgent
	case a.RunID != nil && a.FlowID != nil:
		return CodeRunIDWithFlowID
	}
	return ""
}

func (a Attributes) appendJSON(b []byte) []byte {
	return appendObject(b, func(b []byte) []byte {
		if a.AgentID != nil {
			b = appendString(append(b, `,"agent_id":`...), *a.AgentID)
		}
		if a.Delegates {
			b = append(b, `,"delegates":true`...)
		}
		if a.FlowID != nil {
			b = appendString(append(b, `,"flow_id":`...), *a.FlowID)
		}
		if a.RunID != nil {
			b = appendString(append(b, `,"run_id":`...), *a.RunID)
		}
		return b
	})
}

var attributeMembers = members{"agent_id", "delegates", "flow_id", "run_id"}

func (r *reader) attributes() (a Attributes, err error) {
	_, err = r.object(attributeMembers, false, func(i int) (err error) {
		switch i {
		case 0:
			a.AgentID, err = r.optionalString()
		case 1:
			a.Delegates, err = r.bool()
		case 2:
			a.FlowID, err = r.optionalString()
		case 3:
			a.RunID, err = r.optionalString()
		}
		return err
	})
	return a, err
}

// isToken says whether s is 1 to 256 printable ASCII bytes without a space.
func isToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
