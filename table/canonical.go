package table

// Canonical appends the record's canonical form to b: compact JSON, members in
// the order of their names, sets sorted and without repeats, members that are
// unset left out. bind_proof_sha256, which is a secret, and replace_only_if_idle,
// which is a condition of one request, are never in it.
func (r *Record) Canonical(b []byte) []byte {
	return appendObject(b, func(b []byte) []byte {
		if !r.Attributes.Empty() {
			b = r.Attributes.appendJSON(append(b, `,"attributes":`...))
		}
		if r.Carriers.Len() > 0 {
			b = appendArray(append(b, `,"carriers":`...), r.Carriers.sorted, Carrier.appendJSON)
		}
		if r.ChildOwners.Len() > 0 {
			b = appendArray(append(b, `,"child_owners":`...), r.ChildOwners.sorted, Principal.appendJSON)
		}
		if r.ExpiresAtMS != nil {
			b = appendUint(append(b, `,"expires_at_ms":`...), *r.ExpiresAtMS)
		}
		b = append(b, `,"kind":"`...)
		b = append(append(b, r.Kind.String()...), '"')
		if r.Parent != nil {
			b = r.Parent.appendJSON(append(b, `,"parent":`...))
		}
		b = appendString(append(b, `,"ref":`...), r.Ref)
		return appendUint(append(b, `,"scope_epoch":`...), r.Epoch)
	})
}
