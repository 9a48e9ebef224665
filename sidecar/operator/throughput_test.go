package operator_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/sidecar"
	"scopeward/sidecar/config"
	"scopeward/sidecar/operator/api"
)

// openers is how many clients open at once, each two routes at a time.
const openers = 8

// round is how long one measurement lasts. Short ones see the same machine.
const round = 200 * time.Millisecond

// statusEvery is how many watched rounds have one status --json: one a second.
const statusEvery = 5

// BenchmarkWatched measures what watching costs: scoped opens through a whole
// sidecar, as fast as the machine lets them, in rounds alone and rounds with one
// reader of the event stream and a status --json each second. The two take turns at
// going first, and a pair of rounds is compared with itself only, since the machine
// does other things too. It prints the median pair. Stub router, modules and openers
// share the machine and are in the throughput, as real ones would.
func BenchmarkWatched(b *testing.B) {
	w := newWorld(b)
	w.measure() // nobody's: everything is warm then
	var alone, watched, slower, dearer []float64
	for i := 0; b.Loop(); i++ {
		var a, o sum
		if i%2 == 0 {
			a = w.measure()
		}
		stop := w.watch(b, i%statusEvery == 0)
		o = w.measure()
		stop()
		if i%2 == 1 {
			a = w.measure()
		}
		alone, watched = append(alone, a.rate()), append(watched, o.rate())
		slower, dearer = append(slower, 100*(1-o.rate()/a.rate())), append(dearer, 100*(o.each()/a.each()-1))
	}
	b.ReportMetric(0, "ns/op") // says nothing here
	b.ReportMetric(median(alone), "opens/s-alone")
	b.ReportMetric(median(watched), "opens/s-watched")
	b.ReportMetric(slices.Min(watched), "opens/s-slowest")
	b.ReportMetric(median(slower), "%-throughput-cost")
	b.ReportMetric(median(dearer), "%-cpu-cost")
	b.ReportMetric(float64(w.lagged.Load()), "readers-cut")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// sum is what one round comes to.
type sum struct {
	opens     int64
	wall, cpu time.Duration
}

func (s sum) rate() float64 { return float64(s.opens) / s.wall.Seconds() }
func (s sum) each() float64 { return float64(s.cpu.Microseconds()) / float64(s.opens) }

// world is a sidecar with all that is before and behind it.
type world struct {
	socket string
	opened atomic.Int64
	lagged atomic.Int64
}

func newWorld(b *testing.B) *world {
	dir, err := os.MkdirTemp("", "op")
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	r, err := routertest.NewRouter(routertest.Config{
		Path: filepath.Join(dir, "router.json"), Modules: []routertest.ModuleConfig{{ID: "core"}, {ID: "tool"}, {ID: "aide"}},
	})
	require.NoError(b, err)
	b.Cleanup(r.Close)
	front := filepath.Join(dir, "front.json")
	cfg, err := config.Parse("", fmt.Appendf(nil, `{"router":{"connection_file":%q},"connection_file":%q,"attribution":{"mode":"off"},"heal":false}`, r.Path(), front), func(string) string { return "" })
	require.NoError(b, err)
	s := sidecar.New(sidecar.Params{Config: cfg, Log: zap.NewNop()})
	require.NoError(b, s.Start(context.Background()))
	b.Cleanup(func() { s.Stop(context.Background()) })
	require.Eventually(b, func() bool { _, err := connfile.Read(front); return err == nil }, 20*time.Second, time.Millisecond)

	owner := routertest.DialModule(b, front)
	owner.Hello("core", routertest.Nonce(r.Launch("core")))
	owner.Sync(1, routertest.Doc{"ref": "s", "scope_epoch": 1, "kind": "worker", "carriers": []any{routertest.Doc{"principal": routertest.Direct()}}}).OK()
	targets := []string{"tool", "aide"} // one takes 12 opens at a time
	for _, id := range targets {
		m := routertest.DialModule(b, front)
		m.Hello(id, routertest.Nonce(r.Launch(id)))
		m.Serve()
	}

	w := &world{socket: cfg.Operator.Socket}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range openers {
		c := routertest.Dial(b, front)
		open := func() *routertest.Opening {
			return c.StartOpen(targets[i%2], routertest.Scope(routertest.Selector("core", "s", 1)))
		}
		running.Go(func() {
			for next := open(); ctx.Err() == nil; w.opened.Add(1) {
				under := next
				next = open()
				under.Route().Goodbye()
			}
		})
	}
	b.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *world) measure() sum {
	opens, start, cpu := w.opened.Load(), time.Now(), processorTime()
	<-time.After(round)
	return sum{w.opened.Load() - opens, time.Since(start), processorTime() - cpu}
}

func processorTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watch reads the event stream, undecoded as a reader in another process would
// have it, and asks for the status.
func (w *world) watch(b *testing.B, status bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.socket)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://scopeward"+api.PathEvents, nil)
	require.NoError(b, err)
	res, err := tr.RoundTrip(req)
	require.NoError(b, err)
	client := api.NewClient(w.socket)
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, make([]byte, 64<<10)); err == nil {
			w.lagged.Add(1)
		}
	})
	if status {
		running.Go(func() { client.Status(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
		res.Body.Close()
		tr.CloseIdleConnections()
		client.Close()
	}
}
