package table

import "slices"

// Totals are the sizes of a table, as an operator counts them.
type Totals struct {
	Synced  int // owners that have synced
	Scopes  int // live
	Routes  int // live
	Pending int // binds in flight
	Holders int // presences, provisional ones included
}

// Totals counts without looking at a scope.
func (t *Table) Totals() Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	var n Totals
	for _, o := range t.owners {
		n.Scopes += len(o.live)
		if o.synced {
			n.Synced++
		}
	}
	for _, r := range t.routes {
		if r.live {
			n.Routes++
		} else {
			n.Pending++
		}
	}
	for _, p := range t.peers {
		n.Holders += len(p.holds)
	}
	return n
}

// RouteStats is one route as an operator sees it.
type RouteStats struct {
	ID        RouteID
	Scope     ScopeID
	Opener    Peer
	Principal Principal // whom the router stamped on the bind
	Module    string    // the target's module id
	Provider  Peer      // who serves it
	Live      bool      // false: its bind is in flight
}

// Routes lists the routes, live and in flight, by id.
func (t *Table) Routes() []RouteStats {
	t.mu.Lock()
	list := make([]RouteStats, 0, len(t.routes))
	for _, r := range t.routes {
		list = append(list, RouteStats{
			ID: r.id, Scope: r.scope.ID, Opener: r.Opener, Principal: r.Principal,
			Module: r.Module, Provider: r.Provider, Live: r.live,
		})
	}
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b RouteStats) int { return int(a.ID) - int(b.ID) })
	return list
}
