package table

import "slices"

// peer is one registration of one connection while it is joined.
type peer struct {
	routes map[*route]struct{} // opened or served
	holds  map[*scope]struct{} // presence, provisional or not
	owner  *owner              // whose authority it may have, nil for none
}

// Join makes p known. Only a joined peer reserves, holds presence or takes
// authority. Joining twice changes nothing.
func (t *Table) Join(p Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peers[p] == nil {
		t.peers[p] = &peer{routes: map[*route]struct{}{}, holds: map[*scope]struct{}{}}
	}
}

// Leave releases all that p holds: the reservations and routes that it opened or
// serves, its presence, its authority. It returns the routes released, by id.
// Records, generations and tombstones of an owner stay.
func (t *Table) Leave(p Peer) []RouteID {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := t.peers[p]
	if gone == nil {
		return nil
	}
	delete(t.peers, p)
	var released []RouteID
	for r := range gone.routes {
		t.removeRouteLocked(r)
		released = append(released, r.id)
	}
	slices.Sort(released)
	for s := range gone.holds {
		delete(s.holders, p)
	}
	if o := gone.owner; o != nil && o.authority.peer == p {
		o.authority = authority{}
	}
	return released
}
