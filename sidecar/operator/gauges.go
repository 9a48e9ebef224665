package operator

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"scopeward/proxy"
	"scopeward/table"
)

// ownersNamed is how many owners have a label of their own. Only a module of the
// router's roster can be one; whoever is beyond is in the totals.
const ownersNamed = 64

// gauges reads, at each scrape, what is not counted as it happens.
type gauges struct{ s *Server }

// gauge makes a description. Every name is in the table below and nowhere else.
func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// descriptions are every gauge's, in the order of their names here.
type descriptions struct {
	build, ready, live                                              *prometheus.Desc
	attached, published, passing, since                             *prometheus.Desc
	connections, modules                                            *prometheus.Desc
	owners, scopes, routes, pending, presence, ownerScopes, syncAge *prometheus.Desc
	attributed, lost, fault, source, bypass                         *prometheus.Desc
	relay                                                           *prometheus.Desc
}

func describe() descriptions {
	return descriptions{
		build:       gauge("build_info", "1, labelled with the version.", "version"),
		ready:       gauge("ready", "1 when a client can open routes through the sidecar: the probe through itself passed whole."),
		live:        gauge("live", "1 when the sidecar does its part of the probe, with or without a router."),
		attached:    gauge("router_attached", "1 when the router is there."),
		published:   gauge("router_published", "1 when our connection file is in place."),
		passing:     gauge("router_serves_scopes", "1 when the router serves scopes itself and the sidecar lets it."),
		since:       gauge("router_since_timestamp_seconds", "When the router came, or went."),
		connections: gauge("connections", "Pairs of connections."),
		modules:     gauge("modules", "Registered module connections."),
		owners:      gauge("owners_synced", "Owners that have synced in this incarnation."),
		scopes:      gauge("scopes", "Live scopes."),
		routes:      gauge("routes", "Live scoped routes."),
		pending:     gauge("pending_binds", "Binds in flight."),
		presence:    gauge("presence", "Presences held, provisional ones included."),
		ownerScopes: gauge("owner_scopes", "Live scopes of one owner.", "owner"),
		syncAge:     gauge("owner_last_sync_age_seconds", "Time since the owner's last accepted sync or apply.", "owner"),
		attributed:  gauge("attribution_connections_total", "Connections by whether their process became known.", "result"),
		lost:        gauge("attribution_lost_total", "Callers that the programs saw and could not keep."),
		fault:       gauge("attribution_fault", "1 when the last self-probe of attribution failed."),
		source:      gauge("attribution_source", "1, labelled with the source in use and the mode in effect.", "source", "mode"),
		bypass:      gauge("bypass_connections_total", "Connections that went straight to the router."),
		relay:       gauge("relay_seconds", "Time from the read of a socket until all of it was written to the other one. One read in 64 is measured."),
	}
}

// Describe implements [prometheus.Collector]. It describes nothing: which owners
// there are is known at a scrape only.
func (g gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (g gauges) Collect(out chan<- prometheus.Metric) {
	d, state := describe(), g.s.p.State()
	send := func(typ prometheus.ValueType, desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, typ, value, labels...)
	}
	set := func(desc *prometheus.Desc, value float64, labels ...string) {
		send(prometheus.GaugeValue, desc, value, labels...)
	}
	health := g.s.p.Prober.Probe(context.Background())
	set(d.build, 1, Version())
	set(d.ready, truth(health.Ready))
	set(d.live, truth(health.Live))
	set(d.attached, truth(state.Router.Attached))
	set(d.published, truth(state.Published))
	set(d.passing, truth(state.Router.ServesScopes))
	set(d.since, float64(state.Router.SinceMS)/1000)

	totals := g.s.totals()
	set(d.connections, float64(totals.Sessions))
	set(d.modules, float64(totals.Modules))
	set(d.owners, float64(totals.Synced))
	set(d.scopes, float64(totals.Scopes))
	set(d.routes, float64(totals.Routes))
	set(d.pending, float64(totals.Pending))
	set(d.presence, float64(totals.Presence))
	for i, o := range g.s.owners() {
		if i == ownersNamed {
			break
		}
		set(d.ownerScopes, float64(o.Live), o.ID)
		if at := g.s.p.Metrics.lastSync(o.ID); at != 0 {
			set(d.syncAge, time.Since(time.UnixMilli(at)).Seconds(), o.ID)
		}
	}

	a := state.Attribution
	send(prometheus.CounterValue, d.attributed, float64(a.Known), "known")
	send(prometheus.CounterValue, d.attributed, float64(a.Unknown), "unknown")
	send(prometheus.CounterValue, d.lost, float64(a.Lost))
	set(d.fault, truth(a.Fault != ""))
	set(d.source, 1, a.Source, a.Mode)
	send(prometheus.CounterValue, d.bypass, float64(a.Bypasses))
	out <- relayHistogram(d.relay, g.s.p.Proxy.RelayTimes())
}

func relayHistogram(desc *prometheus.Desc, t proxy.RelayTimes) prometheus.Metric {
	within, n := make(map[float64]uint64, len(t.Within)), uint64(0)
	for i, some := range t.Within {
		n += some
		within[proxy.RelayBound(i).Seconds()] = n
	}
	return prometheus.MustNewConstHistogram(desc, n+t.Over, t.Sum.Seconds(), within)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// owners are those of the current table, by id.
func (s *Server) owners() []table.OwnerStats {
	w := s.p.Proxy.World()
	if w == nil {
		return nil
	}
	list := w.Table.Owners()
	s.p.Metrics.retain(list)
	return list
}
