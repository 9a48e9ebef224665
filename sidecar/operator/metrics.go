package operator

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// namespace begins every name of ours.
const namespace = "scopeward"

// maxSeries bounds the decisions that are counted apart. Rules and codes are the
// contract's and ours, so the bound is never reached; beyond it they are other.
const maxSeries = 256

const other = "other"

// Metrics are the sidecar's for Prometheus. No label has a value that a caller
// chose, but for an owner's module id, which is bounded.
type Metrics struct {
	registry   *prometheus.Registry
	decisions  *prometheus.CounterVec
	admission  prometheus.Histogram
	commit     prometheus.Histogram
	call       prometheus.Histogram
	identities *prometheus.CounterVec
	mismatches atomic.Uint64

	mu     sync.RWMutex
	series map[series]*counted
	synced map[string]int64 // by owner: when its last sync was accepted, Unix milliseconds
}

// series is what decisions are counted by.
type series struct{ kind, rule, code string }

// counted is one of them: for Prometheus, and for status.
type counted struct {
	prometheus.Counter
	n atomic.Uint64
}

// NewMetrics makes the metrics, registered with a registry of their own.
func NewMetrics() *Metrics {
	latency := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 12), // 1 µs to 4 s
		})
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "decisions_total",
			Help: "Decisions by kind, by the rule that decided and by code.",
		}, []string{"kind", "rule", "code"}),
		admission: latency("admission_seconds", "Time that admission took for one bind, under the table's lock and waiting for it."),
		commit:    latency("commit_seconds", "Time that the commit of one bind took, under the table's lock and waiting for it."),
		call:      latency("sync_seconds", "Time that one scope.sync or scope.apply took, from its body to its reply."),
		identities: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "attribution_mismatches_total",
			Help: "Identities presented by a process that they were not given to.",
		}, []string{"by", "refused"}),
		series: map[series]*counted{},
		synced: map[string]int64{},
	}
	m.registry.MustRegister(m.decisions, m.admission, m.commit, m.call, m.identities,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds the journal's own state.
func (m *Metrics) watch(j *Journal) {
	counter := func(name, help string, value func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help},
			func() float64 { return float64(value()) })
	}
	m.registry.MustRegister(
		counter("decision_log_dropped_total", "Decisions that the log has not got: an opener's share was used up, or the log was not written fast enough.", j.dropped),
		counter("events_lagged_total", "Readers of the event stream that were cut since they fell behind.", j.hub.lagged.Load),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "event_readers", Help: "Readers of the event stream."},
			func() float64 { return float64(j.hub.readers.Load()) }),
	)
}

// decided counts a decision.
func (m *Metrics) decided(d proxy.Decision) {
	m.count(d.Kind.String(), d.Rule, d.Code)
	switch d.Kind {
	case proxy.Admitted, proxy.Refused:
		observe(m.admission, d)
	case proxy.Committed, proxy.Stale:
		observe(m.commit, d)
	case proxy.Synced, proxy.Applied:
		observe(m.call, d)
		m.mu.Lock()
		m.synced[d.Principal.ModuleID] = d.AtMS
		m.mu.Unlock()
	}
}

// observe leaves out decisions that took no time of their own.
func observe(h prometheus.Histogram, d proxy.Decision) {
	if d.Elapsed > 0 {
		h.Observe(d.Elapsed.Seconds())
	}
}

// count counts one decision in its series.
func (m *Metrics) count(kind, rule, code string) { m.add(kind, rule, code, 1) }

// add counts n decisions in their series.
func (m *Metrics) add(kind, rule, code string, n int) {
	s := series{kind, rule, code}
	m.mu.RLock()
	c := m.series[s]
	m.mu.RUnlock()
	if c == nil {
		c = m.open(s)
	}
	c.Add(float64(n))
	c.n.Add(uint64(n))
}

func (m *Metrics) open(s series) *counted {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series[s] == nil && len(m.series) >= maxSeries {
		s.rule, s.code = other, other
	}
	c := m.series[s]
	if c == nil {
		c = &counted{Counter: m.decisions.WithLabelValues(s.kind, s.rule, s.code)}
		m.series[s] = c
	}
	return c
}

func (m *Metrics) mismatch(x launch.Mismatch) {
	m.mismatches.Add(1)
	m.identities.WithLabelValues(questionName(x.Kind), strconv.FormatBool(x.Refused)).Inc()
}

// byKind is how often each kind of decision was taken, in no order.
func (m *Metrics) byKind() map[string]uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	kinds := map[string]uint64{}
	for s, c := range m.series {
		kinds[s.kind] += c.n.Load()
	}
	return kinds
}

// lastSync is when an owner's last sync or apply was accepted, 0 for never.
func (m *Metrics) lastSync(owner string) int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.synced[owner]
}

// retain forgets owners that are not in the table any more.
func (m *Metrics) retain(owners []table.OwnerStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.synced) <= len(owners) {
		return
	}
	kept := make(map[string]int64, len(owners))
	for _, o := range owners {
		if at, ok := m.synced[o.ID]; ok {
			kept[o.ID] = at
		}
	}
	m.synced = kept
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// decisionCounts are byKind as the API has them.
func (m *Metrics) decisionCounts() []api.DecisionCount {
	counts := []api.DecisionCount{}
	for kind, n := range m.byKind() {
		counts = append(counts, api.DecisionCount{Kind: kind, Count: n})
	}
	return counts
}
