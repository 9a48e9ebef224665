package sidecar

import (
	"context"
	"errors"
	"net"

	"go.uber.org/zap"

	"scopeward/bpf"
	"scopeward/sidecar/config"
	"scopeward/sidecar/operator"
	"scopeward/sidecar/operator/api"
)

// operation is what an operator sees of a running sidecar. The journal is there
// before anything can be decided, the API once there is something to see.
type operation struct {
	metrics *operator.Metrics
	journal *operator.Journal
	prober  *operator.Prober
	server  *operator.Server
}

func newOperation(log *zap.Logger) operation {
	metrics := operator.NewMetrics()
	return operation{
		metrics: metrics,
		journal: operator.NewJournal(operator.JournalParams{Log: log.Named("decision"), Metrics: metrics}),
	}
}

// close ends the API and then the journal, which writes what waits.
func (o *operation) close(ctx context.Context) error {
	var failed error
	if o.server != nil {
		failed = o.server.Close(ctx)
	}
	if o.journal != nil {
		failed = errors.Join(failed, o.journal.Close(ctx))
	}
	return failed
}

// operate opens the operator API on a socket that is listened on already.
func (s *Sidecar) operate(ctx context.Context, socket net.Listener) error {
	listen := s.listener.Addr().String()
	s.operation.prober = operator.NewProber(operator.ProberParams{
		Addr: listen, File: s.cfg.ConnectionFile, World: s.server.World, State: s.state,
	})
	p := operator.Params{
		Log: s.log.Named("operator"), Journal: s.operation.journal, Metrics: s.operation.metrics, Prober: s.operation.prober,
		Proxy: s.server, Launches: s.launches, State: s.state,
		Listener: socket, MetricsAddr: s.cfg.Metrics.Listen, Listen: listen, ConnectionFile: s.cfg.ConnectionFile,
	}
	if s.ledger != nil {
		p.Ledger = s.ledger
	}
	server, err := operator.NewServer(ctx, p)
	if err != nil {
		return err
	}
	s.operation.server = server
	return nil
}

// Health tries the sidecar through itself. It is what the watchdog asks, too: live
// says that the sidecar does its part, ready that clients can open routes.
func (s *Sidecar) Health(ctx context.Context) api.Health { return s.operation.prober.Probe(ctx) }

// state is what the operator's view is made of beside the proxy and the launch
// table.
func (s *Sidecar) state() operator.State {
	r := s.keeper.State()
	st := operator.State{
		Router: api.Router{
			Attached: r.Attached, Why: r.Why, File: s.cfg.Router.ConnectionFile, PID: int64(r.PID),
			Version: r.Version, Address: r.Addr, ServesScopes: r.Pass && r.Able, SpawnFeed: r.SpawnFeed,
		},
		Scopes:      "nobody",
		Published:   s.publication.isPublished(),
		Config:      *s.reloads.Load(),
		Attribution: s.attribution.view(),
	}
	if !r.Since.IsZero() {
		st.Router.SinceMS = r.Since.UnixMilli()
	}
	switch {
	case r.Attached && !r.Pass:
		st.Scopes = "sidecar"
	case r.Attached && r.Able:
		st.Scopes = "router"
	case !r.Attached && r.Why == "":
		st.Router.Why = "it has not been looked for yet"
	}
	return st
}

// view is attribution as the operator sees it.
func (a *attribution) view() api.Attribution {
	v := api.Attribution{Mode: string(a.effective()), Source: "none", Why: a.why, Bypassing: []api.Bypass{}}
	if a.source == nil {
		if v.Why == "" {
			v.Why = "attribution.mode is " + string(config.AttributionOff)
		}
		return v
	}
	a.mu.Lock()
	v.Fault = a.fault
	a.mu.Unlock()
	st := a.source.Status()
	v.Source = "ebpf"
	if st.Source == bpf.SourceProcfs {
		v.Source = "procfs"
	}
	v.Why, v.Known, v.Unknown, v.Bypasses = st.Why, st.Known, st.Unknown, st.Bypasses
	v.Lost = st.Lost.Connects + st.Lost.Tuples + st.Lost.Accepted + st.Lost.Bypasses
	_, last := a.source.Bypasses()
	for _, b := range last {
		v.Bypassing = append(v.Bypassing, api.Bypass{
			PID: int64(b.PID), UID: int64(b.UID), Exe: b.Exe, Count: b.Count, LastMS: b.Last.UnixMilli(),
		})
	}
	return v
}
