package operator_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
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

// openers is how many clients open at once, each one route after the other.
const openers = 8

// round is how long one measurement lasts.
const round = time.Second

// BenchmarkWatched measures what watching costs: rounds of scoped opens through a
// whole sidecar, in turn alone and with one reader of the event stream and one
// status a second. Its cost is in processor time for each open, since a round's
// rate is at the mercy of whatever else the machine does. All of the stub router,
// module and openers is in that time too: of the sidecar alone the share is larger
// by as much as they are.
func BenchmarkWatched(b *testing.B) {
	w := newWorld(b)
	var alone, watched sum
	for b.Loop() {
		alone.add(w.measure())
		stop := w.watch(b)
		watched.add(w.measure())
		stop()
	}
	b.ReportMetric(alone.rate(), "opens/s-alone")
	b.ReportMetric(watched.rate(), "opens/s-watched")
	b.ReportMetric(alone.each(), "µs-cpu/open-alone")
	b.ReportMetric(watched.each()-alone.each(), "µs-cpu/open-for-watching")
	b.ReportMetric(100*(watched.each()/alone.each()-1), "%-cpu-cost")
	b.ReportMetric(float64(w.lagged.Load()), "readers-cut")
}

// sum is what rounds come to.
type sum struct {
	opens     int64
	wall, cpu time.Duration
}

func (s *sum) add(t sum) { s.opens += t.opens; s.wall += t.wall; s.cpu += t.cpu }

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
		Path: filepath.Join(dir, "router.json"), Modules: []routertest.ModuleConfig{{ID: "core"}, {ID: "tool"}},
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
	tool := routertest.DialModule(b, front)
	tool.Hello("tool", routertest.Nonce(r.Launch("tool")))
	tool.Serve()

	w := &world{socket: cfg.Operator.Socket}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range openers {
		c := routertest.Dial(b, front)
		running.Go(func() {
			for ctx.Err() == nil {
				c.Open("tool", routertest.Scope(routertest.Selector("core", "s", 1))).Goodbye()
				w.opened.Add(1)
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
// have it, and the status once a second.
func (w *world) watch(b *testing.B) (stop func()) {
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
	running.Go(func() {
		for ctx.Err() == nil {
			client.Status(ctx)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		res.Body.Close()
		tr.CloseIdleConnections()
		client.Close()
	}
}
