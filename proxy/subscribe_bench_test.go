package proxy

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"
)

// A sync of 10,000 records, its owner's first or one that replaces every session,
// beside subscribers that read: none, a thousand. sync-ms is what its owner
// waits, the median, and best-ms the least; told-ms is how long until the last
// subscriber has all of it; heap-MB is the most that was in use; cut is how many
// subscribers fell too far behind.
func BenchmarkSyncBesideSubscribers(b *testing.B) {
	for _, n := range []int{0, 1000} {
		for _, kind := range []string{"first", "replacing"} {
			b.Run(fmt.Sprintf("%s/subscribers=%d", kind, n), func(b *testing.B) { benchSync(b, kind, n) })
		}
	}
}

func benchSync(b *testing.B, kind string, subscribers int) {
	f := newFront(b)
	var read atomic.Int64
	for i := range subscribers {
		f.subscriber(fmt.Sprint("m", i), &read)
	}
	var took []time.Duration
	told, peak, generation := time.Duration(0), uint64(0), 0
	o := f.owner("owner")
	if kind == "replacing" {
		o.sync(b, 1, 1)
		generation = 1
		settle(&read)
	}
	for b.Loop() {
		generation++
		if kind == "first" {
			o = f.owner(fmt.Sprint("owner", generation))
		}
		runtime.GC()
		began := time.Now()
		o.sync(b, generation, generation)
		took = append(took, time.Since(began))
		peak = max(peak, settle(&read))
		told += time.Since(began) - quiet
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "sync-ms")
	b.ReportMetric(float64(took[0].Microseconds())/1e3, "best-ms")
	w := f.server.World()
	w.changes.mu.Lock()
	b.ReportMetric(float64(subscribers-len(w.changes.subs)), "cut")
	w.changes.mu.Unlock()
	b.ReportMetric(float64(told.Milliseconds())/float64(len(took)), "told-ms")
	b.ReportMetric(float64(peak)/1e6, "heap-MB")
	b.ReportMetric(0, "ns/op")
}

// quiet is how long nothing must come before everybody has everything.
const quiet = 300 * time.Millisecond

// settle waits until subscribers are sent nothing any more, and returns the most
// heap that was in use meanwhile.
func settle(read *atomic.Int64) (peak uint64) {
	tick := time.NewTicker(quiet / 10)
	defer tick.Stop()
	for last, same := int64(-1), 0; same < 10; same++ {
		<-tick.C
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		if now := read.Load(); now != last {
			last, same = now, 0
		}
	}
	return peak
}

// wireModule is a module that does no more than it must.
type wireModule struct{ c net.Conn }

func (f *front) wireModule(id string) wireModule {
	file, err := connfile.Read(f.file)
	require.NoError(f.t, err)
	c, err := connfile.Dial(f.t.Context(), file, handshake.RoleClient)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { c.Close() })
	m := wireModule{c}
	_, err = c.Write(frame(wire.Hello, 1, doc{"protocol_ver": 2, "manifest": doc{"module_id": id, "module_version": "1", "protocol_ver": 2, "provides": []any{}}}))
	require.NoError(f.t, err)
	require.Equal(f.t, wire.HelloAck, m.read(f.t).Type)
	return m
}

func (m wireModule) read(t testing.TB) wire.Frame {
	fr, err := wire.ReadFrame(m.c)
	require.NoError(t, err)
	return fr
}

// subscriber reads the feed and counts its bytes.
func (f *front) subscriber(id string, read *atomic.Int64) {
	m := f.wireModule(id)
	_, err := m.c.Write(frame(wire.Request, 2, doc{"op": wire.OpScopeSubscribe}))
	require.NoError(f.t, err)
	require.Equal(f.t, wire.StreamData, m.read(f.t).Type)
	done := make(chan struct{})
	f.t.Cleanup(func() { m.c.Close(); <-done })
	go func() {
		defer close(done)
		_, _ = io.CopyBuffer(counter{read}, onlyReader{m.c}, make([]byte, 32<<10))
	}()
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) { c.n.Add(int64(len(b))); return len(b), nil }

type onlyReader struct{ io.Reader }

type wireOwner struct{ wireModule }

func (f *front) owner(id string) wireOwner { return wireOwner{f.wireModule(id)} }

// sync sends 10,000 records at an epoch and waits for the reply.
func (o wireOwner) sync(t testing.TB, generation, epoch int) {
	body := fmt.Appendf(nil, `{"op":"scope.sync","generation":%d,"scopes":[`, generation)
	for i := range 10_000 {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"ref":"session-%05d","scope_epoch":%d,"kind":"head"}`, i, epoch)
	}
	body = append(body, "]}"...)
	_, err := o.c.Write(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: uint64(1 + generation)}, body))
	require.NoError(t, err)
	require.Equal(t, wire.Response, o.read(t).Type)
}
