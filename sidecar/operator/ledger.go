package operator

import (
	"github.com/prometheus/client_golang/prometheus"

	"scopeward/sidecar/ledger"
)

// WatchLedger adds the ledger's own state. It is called once, when there is one.
func (m *Metrics) WatchLedger(stats func() ledger.Stats) {
	counter := func(name, help string, value func(ledger.Stats) uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: "ledger_" + name, Help: help},
			func() float64 { return float64(value(stats())) }))
	}
	gauge := func(name, help string, value func(ledger.Stats) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "ledger_" + name, Help: help},
			func() float64 { return value(stats()) }))
	}
	gauge("head", "Number of the last entry on disk.", func(s ledger.Stats) float64 { return float64(s.Head) })
	gauge("queued", "Contents and ends that wait for the disk.", func(s ledger.Stats) float64 { return float64(s.Queued) })
	gauge("failing", "1 when the last attempt to write failed.", func(s ledger.Stats) float64 { return truth(s.Failing) })
	counter("appended_total", "Entries appended.", func(s ledger.Stats) uint64 { return s.Appended })
	counter("rekeyed_total", "Entries appended for one that had been hashed unsorted.", func(s ledger.Stats) uint64 { return s.Rekeyed })
	counter("lost_total", "Contents and ends that the ledger has not got: its queue was full.", func(s ledger.Stats) uint64 { return s.Lost })
	counter("errors_total", "Attempts to write that failed.", func(s ledger.Stats) uint64 { return s.Errors })
	counter("late_total", "Answers that did not wait for the disk any longer.", func(s ledger.Stats) uint64 { return s.Late })
}
