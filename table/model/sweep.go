package model

// Sweep ends every scope whose deadline has passed (section 2, expiry).
func (m *Model) Sweep(now int64) ([]Expiry, []Drain) {
	after := m.state.copy()
	var expired []Expiry
	for _, id := range sortedKeys(after.owners) {
		o := after.owners[id]
		expired = append(expired, m.sweepOwner(after, id, &o, now)...)
		after.owners[id] = o
	}
	return expired, m.settle(after)
}

// sweepOwner takes an owner's passed scopes out of o.
func (m *Model) sweepOwner(s state, id string, o *owner, now int64) []Expiry {
	var expired []Expiry
	for _, ref := range sortedKeys(o.live) {
		sc := o.live[ref]
		if !sc.record.passed(now) {
			continue
		}
		routes := 0
		for _, r := range s.routes {
			if r.session == sc.session && r.live {
				routes++
			}
		}
		delete(o.live, ref)
		m.bury(s, id, o, sc.record, "expired")
		expired = append(expired, Expiry{Owner: id, End: End{ref, sc.record.Epoch}, Routes: routes})
	}
	return expired
}
