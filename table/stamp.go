package table

import "github.com/go-json-experiment/json/jsontext"

// Stamp is the scope member of a bind and of describe's live answer (section 4).
// It holds neither proof nor hash.
type Stamp struct {
	Owner           Principal
	Ref             string
	Epoch           uint64
	Kind            Kind
	Parent          *ScopeID    // nil: none
	ParentState     ParentState // 0 exactly when Parent is nil
	Attributes      Attributes
	OwnerAuthorized bool
	// ExpiresAtMS is Unix milliseconds, nil for none. Whoever stamps a bind for a
	// target that does not declare call-modes/v1 clears it.
	ExpiresAtMS *uint64
}

// Stamp is what a bind under s is stamped with, its deadline included.
func (s *Scope) Stamp() Stamp {
	return Stamp{
		Owner: s.ID.Owner, Ref: s.ID.Ref, Epoch: s.ID.Epoch,
		Kind:   s.Record.Kind,
		Parent: s.Record.Parent, ParentState: s.ParentState,
		Attributes:      s.Record.Attributes,
		OwnerAuthorized: s.OwnerAuthorized,
		ExpiresAtMS:     s.Record.ExpiresAtMS,
	}
}

// MarshalJSONTo writes the stamp. Members that are unset are left out, but for
// owner_authorized.
func (s Stamp) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(s.AppendJSON(nil))
}

// AppendJSON appends the stamp's JSON form to b.
func (s Stamp) AppendJSON(b []byte) []byte {
	b = s.Owner.appendJSON(append(b, `{"owner":`...))
	b = appendString(append(b, `,"ref":`...), s.Ref)
	b = appendUint(append(b, `,"scope_epoch":`...), s.Epoch)
	b = append(b, `,"kind":"`...)
	b = append(append(b, s.Kind.String()...), '"')
	if s.Parent != nil {
		b = s.Parent.appendJSON(append(b, `,"parent":`...))
		b = append(b, `,"parent_state":"`...)
		b = append(append(b, s.ParentState.String()...), '"')
	}
	if !s.Attributes.Empty() {
		b = s.Attributes.appendJSON(append(b, `,"attributes":`...))
	}
	if s.OwnerAuthorized {
		b = append(b, `,"owner_authorized":true`...)
	} else {
		b = append(b, `,"owner_authorized":false`...)
	}
	if s.ExpiresAtMS != nil {
		b = appendUint(append(b, `,"expires_at_ms":`...), *s.ExpiresAtMS)
	}
	return append(b, '}')
}
