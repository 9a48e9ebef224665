package operator

import (
	"net/http"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
)

// launches lists the living launches and the registered modules.
func (s *Server) launches(r *http.Request) (any, error) {
	info := s.p.Launches.Info()
	answer := api.Launches{Launches: []api.Launch{}, Registrations: []api.Registration{}}
	for _, l := range info.Launches {
		answer.Launches = append(answer.Launches, api.Launch{
			ModuleID: l.ModuleID, Generation: l.Generation, PID: int64(l.PID), Current: l.Current,
		})
	}
	if len(info.Registrations) == 0 {
		return answer, nil
	}
	sessions := map[proxy.ConnID]proxy.SessionInfo{}
	for _, session := range s.p.Proxy.Sessions(r.Context()) {
		sessions[session.Conn] = session
	}
	for _, reg := range info.Registrations {
		answer.Registrations = append(answer.Registrations, api.Registration{
			ModuleID: reg.ModuleID, Conn: reg.Conn, Verdict: reg.Verdict, Generation: reg.Generation,
			PID: int64(reg.Process.PID), Exe: reg.Process.Exe,
			Provides: capabilityNames(sessions[reg.Conn].Provides),
		})
	}
	return answer, nil
}
