package proxy

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// BenchmarkGrowth measures what a frame and an open cost beside more and more
// connections and routes that have nothing to do with them. What grows with
// something says so in the README's section on speed.
func BenchmarkGrowth(b *testing.B) {
	// A connection takes two descriptors, and 20,000 is a common limit.
	for _, n := range []int{10, 100, 1_000, 9_800} {
		b.Run(fmt.Sprintf("connections/%d", n), func(b *testing.B) { growthOfConnections(b, n) })
	}
	for _, n := range []int{10, 1_000, 60_000} {
		b.Run(fmt.Sprintf("routes/%d", n), func(b *testing.B) { growthOfRoutes(b, n) })
	}
}

// busy is how many of the connections are used, by turns.
const busy = 10

// growthOfConnections puts n pairs on one loop. frame-ns is what a frame takes from
// one socket of a pair to the other, B/connection what a pair holds.
func growthOfConnections(b *testing.B, n int) {
	needDescriptors(b, 2*n+200)
	l, err := NewLoop()
	require.NoError(b, err)
	ran := make(chan struct{})
	go func() { defer close(ran); l.Run() }()
	var far []int
	defer func() {
		l.Close()
		<-ran
		for _, fd := range far {
			unix.Close(fd)
		}
	}()
	w := quietWorld()
	before := inUse()
	for i := range n {
		p := &pair{session: newSession(ConnID(i+1), w), home: l, done: func(string) {}}
		for d := range p.sides {
			fd := -1
			if i < busy {
				fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				require.NoError(b, err)
				fd, far = fds[0], append(far, fds[1])
			} else { // nobody is at the other end
				fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
				require.NoError(b, err)
			}
			p.sides[d] = side{pair: p, dir: direction(d), fd: fd}
		}
		p.loop.Store(l)
		require.True(b, l.post(func() { l.adopt(p) }))
	}
	frame := data(wire.Request, 1, 1, "a call of no great length")
	room := make([]byte, len(frame))
	relay := func(i int) {
		_, err := unix.Write(far[2*i], frame)
		require.NoError(b, err)
		_, err = unix.Read(far[2*i+1], room)
		require.NoError(b, err)
	}
	for i := range busy {
		relay(i)
	}
	held := inUse() - before
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		relay(i % busy)
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64(held)/float64(n), "B/connection")
	reportMedian(b, took, "frame-ns")
}

// growthOfRoutes gives one opener n live scoped routes, and measures another's way
// from its open to its Goodbye, in memory.
func growthOfRoutes(b *testing.B, n int) {
	r := newRig(b)
	r.module("owner").sync(1, record("s", 1, directCarrier))
	c, m := r.connect(), r.module("tool")
	before := inUse()
	for i := range n {
		r.opened(c, m, "s", 1, uint16(i+1))
		r.seen, r.facts.asked = nil, nil
	}
	held := inUse() - before
	one := uint16(n + 1)
	var took []time.Duration
	for epoch := uint32(1); b.Loop(); epoch++ {
		began := time.Now()
		r.opened(c, m, "s", 1, one)
		c.fromPeer(wire.AppendGoodbye(nil, one, 1))
		c.toRouter()
		m.fromRouter(wire.AppendGoodbye(nil, one, 1))
		m.toPeer()
		m.toRouter()
		took = append(took, time.Since(began))
		r.seen, r.facts.asked = nil, nil
	}
	require.Equal(b, n, r.world.Table.Totals().Routes)
	b.ReportMetric(float64(held)/float64(n), "B/route")
	reportMedian(b, took, "open-ns")
}

func quietWorld() *World {
	facts := &stubFacts{closed: make(chan ConnID, 1)}
	return &World{
		Table: table.New(table.Config{Incarnation: "00"}), log: zap.NewNop(), launches: facts, recorder: facts,
		now: func() int64 { return 0 }, post: func(ConnID, Event) {}, work: func(func()) {}, opens: make(map[string]*open),
	}
}

// needDescriptors skips where n open files are not allowed.
func needDescriptors(b *testing.B, n int) {
	var limit unix.Rlimit
	require.NoError(b, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if limit.Cur < uint64(n) {
		b.Skipf("%d open files are not allowed, %d are", n, limit.Cur)
	}
}

// inUse is the heap in use after a collection, in bytes.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// reportMedian reports the median in place of the mean, which whatever else runs
// on the machine spoils.
func reportMedian(b *testing.B, took []time.Duration, unit string) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), unit)
	b.ReportMetric(0, "ns/op")
}
