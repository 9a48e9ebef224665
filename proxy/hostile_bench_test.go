package proxy

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// A well-behaved neighbour's calls, quiet and beside each hostile peer, by turns
// in one run: quiet-p99-us and p99-us, and how many times the first the second
// is. The hostile peer, the stub router and the neighbour share the machine with
// the sidecar, so what they cost each other is in the figure.
func BenchmarkNeighbour(b *testing.B) {
	all := floods()
	all["nothing"] = func(*front) func() { return func() {} }
	all["a peer that never reads"] = func(f *front) func() {
		c := f.raw()
		done := make(chan struct{})
		go func() {
			defer close(done)
			ask := bytes.Repeat(frame(wire.Request, 1, doc{"op": wire.OpScopeSync}), 1000)
			for {
				if _, err := c.Write(ask); err != nil {
					return
				}
			}
		}()
		return func() {
			c.Close()
			<-done
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) { benchNeighbour(b, all[name]) })
	}
}

// windowCalls is how many calls are measured before the other's turn.
const windowCalls = 500

func benchNeighbour(b *testing.B, flood func(*front) func()) {
	f := newFront(b)
	route := f.neighbour()
	var quiet, beside []time.Duration
	for b.Loop() {
		quiet = calls(route, quiet)
		stop := flood(f)
		beside = calls(route, beside)
		stop()
	}
	p99 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)*99/100].Microseconds())
	}
	q, p := p99(quiet), p99(beside)
	b.ReportMetric(q, "quiet-p99-us")
	b.ReportMetric(p, "p99-us")
	b.ReportMetric(p/q, "times")
}

func calls(route *routertest.Route, took []time.Duration) []time.Duration {
	for range windowCalls {
		began := time.Now()
		route.Call("x")
		took = append(took, time.Since(began))
	}
	return took
}
