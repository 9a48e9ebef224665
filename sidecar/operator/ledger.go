package operator

import (
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"scopeward/sidecar/ledger"
	"scopeward/sidecar/operator/api"
)

// Ledger is the durable log of identities that a sidecar keeps.
type Ledger interface {
	// Snapshot writes a copy of its file.
	Snapshot(w io.Writer) error
}

// ledger streams a copy of the ledger. A copy that breaks off is no answer: the
// connection is cut.
func (s *Server) ledger(w http.ResponseWriter, _ *http.Request) {
	if s.p.Ledger == nil {
		refuse(w, http.StatusServiceUnavailable, api.CodeUnavailable, "no ledger is kept: ledger.path is not set")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := s.p.Ledger.Snapshot(&paced{w, http.NewResponseController(w)}); err != nil {
		s.p.Log.Warn("a copy of the ledger broke off", zap.Error(err))
		panic(http.ErrAbortHandler)
	}
}

// paced gives each write its time: a reader that stops holds the ledger's file in
// use no longer than that.
type paced struct {
	w io.Writer
	c *http.ResponseController
}

func (p *paced) Write(b []byte) (int, error) {
	if err := p.c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}

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
