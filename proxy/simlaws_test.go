package proxy

import (
	"cmp"
	"fmt"
	"slices"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// live is the scope as it is in the table, nil when it is not live.
func (s *sim) live(id table.ScopeID) *table.Scope {
	snap := s.world.Table.Snapshot()
	for i := range snap.Scopes {
		if snap.Scopes[i].ID == id {
			return &snap.Scopes[i]
		}
	}
	return nil
}

func permitted(sc *table.Scope, who table.Principal, module string) bool {
	return sc != nil && (who == sc.ID.Owner || sc.Record.Permits(who, module))
}

// checkTable: whatever is under way, the table is sound.
func (s *sim) checkTable() {
	for _, law := range s.world.Table.Invariants() {
		s.fail("the table: %s", law)
	}
}

// checkCommit: a route becomes live under a scope that is live, at that epoch,
// and lets its opener in.
func (s *sim) checkCommit(d Decision) {
	if !permitted(s.live(d.Scope), d.Principal, d.Target) {
		s.fail("a route of %s to %s became live under %s, which is ended or does not let it", d.Principal, d.Target, d.Scope)
	}
}

// checkApplied: what may only replace an idle session has drained no direct
// opener's route.
func (s *sim) checkApplied(a *table.Applied) {
	for _, r := range a.Results {
		if s.empty && r.Code == table.CodeEpochInUse {
			s.fail("%s is in use though everybody left", r.Ref)
		}
	}
	for _, c := range a.Contents() {
		if !s.ifIdle[fmt.Sprintf("%s/%s@%d", c.ID.Owner.ModuleID, c.ID.Ref, c.ID.Epoch)] {
			continue
		}
		for _, d := range a.Drains {
			old := d.Scope.Key == c.ID.Key && d.Scope.Epoch < c.ID.Epoch
			if old && !d.Principal.Reserved() && !slices.ContainsFunc(a.Expired, func(e table.Expiry) bool { return e.ID == d.Scope }) {
				s.fail("%s replaced %s, which was in use", c.ID, d.Scope)
			}
		}
	}
}

// simPair is one scoped route as both the router and the index know it.
type simPair struct {
	opener, provider ConnID
	scope            string
}

func (p simPair) compare(q simPair) int {
	return cmp.Or(cmp.Compare(p.opener, q.opener), cmp.Compare(p.provider, q.provider), cmp.Compare(p.scope, q.scope))
}

// checkRest holds every law of a world in which nothing is under way.
func (s *sim) checkRest() {
	if s.broken != "" {
		return
	}
	s.checkIndex()
	s.checkTable()
	for _, l := range s.links {
		s.checkSession(l)
		if !l.peer.check() {
			s.fail("%T %d waits for something", l.peer, l.id)
		}
	}
	if n := len(s.world.opens); n > 0 {
		s.fail("%d marks are left", n)
	}
	if n := len(s.world.turns.lines); n > 0 {
		s.fail("%d lines of openers are left", n)
	}
}

// checkIndex: the index is the router's scoped routes, each under a live scope
// that permits it, and every bind was answered.
func (s *sim) checkIndex() {
	var router, index []simPair
	for _, c := range s.router.conns {
		for corr := range c.binds {
			s.fail("bind %d of %s is not answered", corr, c.module)
		}
		if c.module != "" {
			continue
		}
		for _, rt := range c.routes {
			ref := s.refs[rt.tag]
			if !rt.marked {
				continue
			}
			router = append(router, simPair{c.link.id, rt.module.link.id, fmt.Sprintf("%s/%s@%d", ref.owner, ref.ref, ref.epoch)})
		}
	}
	for _, r := range s.world.Table.Routes() {
		id := r.Scope
		index = append(index, simPair{r.Opener.Conn, r.Provider.Conn, fmt.Sprintf("%s/%s@%d", id.Owner.ModuleID, id.Ref, id.Epoch)})
		if !r.Live {
			s.fail("a reservation of %s is left", id)
		}
		if !permitted(s.live(id), r.Principal, r.Module) {
			s.fail("a route of %s to %s outlives %s", r.Principal, r.Module, id)
		}
	}
	slices.SortFunc(router, simPair.compare)
	slices.SortFunc(index, simPair.compare)
	if !slices.Equal(router, index) {
		s.fail("the router has %v and the index %v", router, index)
	}
}

// checkSession: a session at rest holds its routes and nothing else.
func (s *sim) checkSession(l *simLink) {
	x := l.s
	switch {
	case x.Ended():
		s.fail("session %d has ended and is there", l.id)
	case x.lanes[0].parked || x.lanes[1].parked || x.marked > 0 || len(x.early) > 0 || len(x.binds) > 0 || x.turn != nil || x.Stuck():
		s.fail("session %d is not at rest: marked %d, early %d, binds %d", l.id, x.marked, len(x.early), len(x.binds))
	}
	near, far := 0, 0
	for _, rt := range l.far.routes {
		if !rt.marked {
			continue
		}
		if l.far.module == "" {
			near++
			if _, ok := x.routes[rt.near]; !ok {
				s.fail("session %d does not know the route %v of its opener", l.id, rt.near)
			}
		} else {
			far++
			if _, ok := x.serving[rt.far]; !ok {
				s.fail("session %d does not know the route %v of its module", l.id, rt.far)
			}
		}
	}
	if len(x.routes) != near || len(x.legs) != near {
		s.fail("session %d holds %d routes of its opener, the router %d", l.id, len(x.routes), near)
	}
}

// check: a client's requests are answered and its routes are the router's.
func (c *simClient) check() bool {
	live := 0
	for at, u := range c.given {
		rt := c.link.far.routes[at.channel]
		there := rt != nil && rt.near == at
		switch {
		case !u.left && !u.closed:
			live++
			if !there || rt.tag != u.tag {
				c.sim.fail("%s has %v and the router has not", c.name(), at)
			}
			if len(u.calls) > 0 {
				c.sim.fail("%s waits for answers on %v", c.name(), at)
			}
		case there:
			c.sim.fail("%s closed %v and the router has it", c.name(), at)
		}
		if u.reason != "" && !u.closed && !u.left {
			c.sim.fail("%s was told that %v ends, and it did not", c.name(), at)
		}
	}
	if n := len(c.link.far.routes); n != live {
		c.sim.fail("%s has %d routes and the router %d of it", c.name(), live, n)
	}
	return !c.fence && len(c.opens)+len(c.plain) == 0 && c.scope == 0
}

// check: a module's calls are answered and it serves what the router has.
func (m *simModule) check() bool {
	if !m.registered {
		return m.hello == 0
	}
	for at, r := range m.serves {
		if rt := m.link.far.routes[at.channel]; !r.over && (rt == nil || rt.far != at || rt.tag != r.tag) {
			m.sim.fail("%s serves %v and the router has it not", m.name(), at)
		}
	}
	return len(m.calls)+len(m.updates)+len(m.binds) == 0
}

// close ends every connection but the owners'. Nothing is held then: no route, no
// bind, no presence, and every session is idle enough to be replaced.
func (s *sim) close() {
	if s.broken != "" {
		return
	}
	for _, l := range s.links {
		if m, ok := l.peer.(*simModule); !ok || m.owner == nil {
			l.shut(peerOut)
		}
	}
	s.settle()
	s.checkRest()
	if n := s.world.Table.Totals(); n.Routes+n.Pending+n.Holders > 0 {
		s.fail("after everybody left: %+v", n)
	}
	for _, l := range s.links {
		m, ok := l.peer.(*simModule)
		if !ok || !m.registered || m.link.far.module == "" || !s.world.Table.Synced(m.id) {
			continue
		}
		for ref, d := range m.owner.records {
			m.owner.epochs[ref]++
			d["scope_epoch"], d["replace_only_if_idle"] = m.owner.epochs[ref], true
			delete(d, "parent")
			delete(d, "expires_at_ms")
		}
		m.owner.generation++
		m.calls = append(m.calls, m.request(doc{"op": wire.OpScopeSync, "generation": m.owner.generation, "scopes": m.owner.list()}))
	}
	s.empty = true
	s.settle()
	for _, l := range s.links {
		l.shut(peerOut)
	}
	s.settle()
	if n := len(s.links); n > 0 && s.broken == "" {
		s.fail("%d links are left", n)
	}
}
