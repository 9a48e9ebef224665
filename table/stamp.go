package table

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
