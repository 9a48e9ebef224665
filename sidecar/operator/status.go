package operator

import (
	"cmp"
	"net/http"
	"os"
	"slices"
	"time"

	"scopeward/sidecar/operator/api"
)

// status answers with the sidecar at a glance. No session is asked and no scope
// looked at: it costs the same with one route and with a hundred thousand.
func (s *Server) status(r *http.Request) (any, error) {
	state := s.p.State()
	st := api.Status{
		Version: Version(), PID: int64(os.Getpid()),
		StartedAtMS: s.started.UnixMilli(),
		Health:      s.p.Prober.Probe(r.Context()),
		Listen:      s.p.Listen, ConnectionFile: s.p.ConnectionFile,
		Published: state.Published, Config: state.Config, Scopes: state.Scopes,
		Router: state.Router, Attribution: state.Attribution,
		Totals: s.totals(), Owners: []api.Owner{}, Decisions: s.p.Metrics.decisionCounts(),
		LogDropped: s.p.Journal.dropped(), Subscribers: s.p.Journal.hub.readers.Load(),
	}
	st.Attribution.Mismatches = s.p.Metrics.mismatches.Load()
	if w := s.p.Proxy.World(); w != nil {
		st.Incarnation = w.Incarnation
	}
	for _, o := range s.owners() {
		owner := api.Owner{
			Owner: o.ID, Authorized: o.Authorized, Generation: o.Generation,
			Scopes: int64(o.Live), Deadlines: int64(o.Deadlines), Tombstones: int64(o.Tombstones),
			LastSyncAtMS: s.p.Metrics.lastSync(o.ID),
		}
		if o.Authority != nil {
			owner.Authority = o.Authority.Conn
		}
		st.Owners = append(st.Owners, owner)
	}
	slices.SortFunc(st.Decisions, func(a, b api.DecisionCount) int { return cmp.Compare(a.Kind, b.Kind) })
	st.NowMS = time.Now().UnixMilli()
	return st, nil
}

func (s *Server) totals() api.Totals {
	t := api.Totals{Sessions: int64(s.p.Proxy.Connections()), Modules: int64(len(s.p.Launches.Info().Registrations))}
	if w := s.p.Proxy.World(); w != nil {
		n := w.Table.Totals()
		t.Synced, t.Scopes, t.Routes = int64(n.Synced), int64(n.Scopes), int64(n.Routes)
		t.Pending, t.Presence = int64(n.Pending), int64(n.Holders)
	}
	return t
}

// health probes, and says with its status whether the sidecar is live.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	h := s.p.Prober.Probe(r.Context())
	status := http.StatusOK
	if !h.Live {
		status = http.StatusServiceUnavailable
	}
	reply(w, status, h)
}
