package table

// usage is who keeps an epoch in use (section 4, idle-only rotation). Openers
// that the router attests as reserved never count.
type usage struct {
	binds   int              // reservations and live routes that count
	holders map[Peer]*holder // at most [MaxHolders]
}

// holder is one peer's presence. It is provisional until a bind of the peer has
// committed, and gone when the last of its binds fails before that.
type holder struct {
	committed bool
	binding   int // of its binds in flight, those that ask for presence
}

// idle says whether a conditional replacement may go on.
func (u *usage) idle() bool { return u.binds == 0 && len(u.holders) == 0 }

// hold adds p's provisional presence, or shares what p has. It says whether
// there was room.
func (u *usage) hold(p Peer) bool {
	h := u.holders[p]
	if h == nil {
		if len(u.holders) >= MaxHolders {
			return false
		}
		if u.holders == nil {
			u.holders = map[Peer]*holder{}
		}
		h = &holder{}
		u.holders[p] = h
	}
	h.binding++
	return true
}

// settle ends one bind of p that held. Committed presence stays until p leaves or
// the epoch ends. It says whether p still holds.
func (u *usage) settle(p Peer, committed bool) bool {
	h := u.holders[p]
	if h == nil {
		return false
	}
	h.binding--
	h.committed = h.committed || committed
	if !h.committed && h.binding == 0 {
		delete(u.holders, p)
		return false
	}
	return true
}
