package proxy

import (
	"cmp"
	"slices"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// reasonRestart closes routes whose authority stands: not terminal, openers
// come back.
const reasonRestart = "restart"

// closing is one live route of this opener that must close.
type closing struct {
	leg            leg
	module, reason string
}

// drain closes the routes that a record change has taken out of the table's
// index. One whose pair the opener has not yet been told waits for that.
func (s *Session) drain(drains []table.Drain) {
	list := make([]closing, 0, len(drains))
	for _, d := range drains {
		at, ok := s.legs[d.Route]
		if ok {
			list = append(list, closing{at, d.Module, d.Reason.String()})
		} else if s.expects(d.Route) {
			if s.early == nil {
				s.early = make(map[table.RouteID]table.Drain)
			}
			s.early[d.Route] = d
		}
	}
	s.close(list)
}

// evict closes the routes whose scope matches, by hand, and says how many.
func (s *Session) evict(match func(table.ScopeID) bool) int {
	var list []closing
	for at, r := range s.routes {
		if match(r.scope) && s.world.Table.Release(r.id) {
			list = append(list, closing{at, r.module, reasonRestart})
		}
	}
	s.close(list)
	return len(list)
}

// close sends one push for each module and reason, then a Goodbye on each
// channel; and to the router a Goodbye on each channel, as if the opener had
// closed it, which closes the module's side. Requests in flight get no Error of
// their own.
func (s *Session) close(list []closing) {
	slices.SortFunc(list, func(a, b closing) int {
		return cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.reason, b.reason), cmp.Compare(a.leg.channel, b.leg.channel))
	})
	for rest := list; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].module == rest[0].module && rest[n].reason == rest[0].reason {
			n++
		}
		s.pushClosed(rest[:n])
		rest = rest[n:]
	}
	for _, c := range list {
		s.forget(c.leg)
		s.writeGoodbye(toPeer, c.leg)
		s.writeGoodbye(toRouter, c.leg)
		s.bury(c.leg, toRouter, toPeer)
	}
	if len(s.outs[toPeer].later) > maxQueued || len(s.outs[toRouter].later) > maxQueued {
		s.cut("too much is queued for a peer that stopped inside a frame")
	}
}

func (s *Session) pushClosed(of []closing) {
	closed := wire.RouteClosed{Op: wire.OpRouteClosed, ModuleID: of[0].module, Reason: of[0].reason}
	for _, c := range of {
		closed.Channels = append(closed.Channels, c.leg.channel)
	}
	s.write(toPeer, wire.AppendFrame(nil, wire.Header{Type: wire.Push}, wire.MustMarshal(closed)))
}

// expects reports whether a route is one whose answer this opener still awaits.
func (s *Session) expects(route table.RouteID) bool {
	if s.marked == 0 {
		return false
	}
	for _, r := range s.requests {
		if r.open != nil && s.world.routeOf(r.open) == route {
			return true
		}
	}
	return false
}
