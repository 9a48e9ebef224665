package operator

import (
	"net/http"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// routes lists the scoped routes, by number. The table says what they are, their
// openers' sessions on which channel.
func (s *Server) routes(r *http.Request) (any, error) {
	match, err := scopeFilter(r)
	if err != nil {
		return nil, err
	}
	target := r.URL.Query().Get("target")
	answer := api.Routes{Routes: []api.Route{}}
	w := s.p.Proxy.World()
	if w == nil {
		return answer, nil
	}
	answer.Incarnation = w.Incarnation
	places := map[table.RouteID]proxy.RouteInfo{}
	for _, session := range s.p.Proxy.Sessions(r.Context()) {
		for _, at := range session.Routes {
			places[at.Route] = at
		}
	}
	for _, rt := range w.Table.Routes() {
		if !match.owns(rt.Scope.Owner) || !match.names(rt.Scope.Ref) || target != "" && target != rt.Module {
			continue
		}
		who := s.p.Launches.Peer(rt.Opener.Conn)
		at := places[rt.ID]
		answer.Routes = append(answer.Routes, api.Route{
			Route: uint64(rt.ID), Live: rt.Live,
			Owner: principalText(rt.Scope.Owner), Ref: rt.Scope.Ref, ScopeEpoch: rt.Scope.Epoch,
			Principal: principalText(rt.Principal), Conn: rt.Opener.Conn, Channel: at.Channel, Epoch: at.Epoch,
			PID: int64(who.PID), Exe: who.Exe, Target: rt.Module, TargetConn: rt.Provider.Conn,
		})
	}
	return answer, nil
}
