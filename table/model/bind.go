package model

// Open is one open of a route under a scope.
type Open struct {
	Owner            string // a module id
	Ref              string
	Epoch            uint64
	Opener, Provider int
	Principal        string
	Module           string
	ProofHash        string // what the selector's proof hashes to
	Hold             bool
}

// Admits says whether section 4's rules that the record decides let o in.
func (m *Model) Admits(o Open, now int64) bool {
	sc, live := m.owners[o.Owner].live[o.Ref]
	switch r := sc.record; {
	case !live, r.Epoch != o.Epoch, r.passed(now):
		return false
	case o.Principal != "reserved:"+o.Owner && !r.permits(o.Principal, o.Module):
		return false
	case r.Proof != "" && !isReserved(o.Principal) && r.Proof != o.ProofHash:
		return false
	}
	return true
}

// Reserve admits o as route id and says whether it did. An opener or a provider
// that has left gets nothing.
func (m *Model) Reserve(id uint64, o Open, now int64) bool {
	if !m.joined[o.Opener] || !m.joined[o.Provider] || !m.Admits(o, now) {
		return false
	}
	sc := m.owners[o.Owner].live[o.Ref]
	holders := m.holders(sc)
	m.routes[id] = route{
		owner: o.Owner, ref: o.Ref, epoch: o.Epoch, session: sc.session, version: sc.version,
		opener: o.Opener, provider: o.Provider, principal: o.Principal, module: o.Module,
		holding: o.Hold && !isReserved(o.Principal) && (holders[o.Opener] || len(holders) < maxHolders),
	}
	return true
}

// holders are the peers present, those of binds in flight included.
func (m *Model) holders(sc scope) map[int]bool {
	holders := map[int]bool{}
	for peer := range sc.present {
		holders[peer] = true
	}
	for _, r := range m.routes {
		if r.session == sc.session && r.holding && !r.live {
			holders[r.opener] = true
		}
	}
	return holders
}

// Commit is section 4, commit: committed, scope_ended, scope_changed, or gone.
func (m *Model) Commit(id uint64) string {
	r, known := m.routes[id]
	if !known || r.live {
		return "gone"
	}
	sc, live := m.under(r)
	switch {
	case !live:
		delete(m.routes, id)
		return "scope_ended"
	case sc.version != r.version:
		delete(m.routes, id)
		return "scope_changed"
	}
	if r.holding {
		sc.present[r.opener] = true
	}
	r.live = true
	m.routes[id] = r
	return "committed"
}

// Release ends a bind or a route. Presence of a committed one stays.
func (m *Model) Release(id uint64) bool {
	_, known := m.routes[id]
	delete(m.routes, id)
	return known
}

// Join makes a peer known.
func (m *Model) Join(peer int) { m.joined[peer] = true }

// Leave is the end of a registration or connection: its routes, its presence and
// its authority go. It returns the routes, by id.
func (m *Model) Leave(peer int) []uint64 {
	if !m.joined[peer] {
		return nil
	}
	delete(m.joined, peer)
	var released []uint64
	for _, id := range sortedKeys(m.routes) {
		if r := m.routes[id]; r.opener == peer || r.provider == peer {
			released = append(released, id)
			delete(m.routes, id)
		}
	}
	for id, o := range m.owners {
		for _, sc := range o.live {
			delete(sc.present, peer)
		}
		if o.authority != nil && o.authority.peer == peer {
			o.authority = nil
		}
		m.owners[id] = o
	}
	return released
}
