package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"scopeward/proxy/wire"
)

// countedKernel counts what a loop asks for. What a socket did not take has to be
// kept, which copies it.
type countedKernel struct {
	rawKernel
	waits, reads, writes, copied int
}

func (k *countedKernel) read(fd int, b []byte) (int, error) {
	k.reads++
	return k.rawKernel.read(fd, b)
}

func (k *countedKernel) write(fd int, b []byte) (int, error) {
	k.writes++
	n, err := k.rawKernel.write(fd, b)
	k.copied += len(b) - max(n, 0)
	return n, err
}

// wait never waits: what the test sent is there.
func (k *countedKernel) wait(poll int, events []unix.EpollEvent, _ int) (int, error) {
	k.waits++
	return k.rawKernel.wait(poll, events, 0)
}

// load is so many calls of a size, sent at once, in pieces that a socket holds.
type load struct {
	name  string
	body  int
	depth int
	most  counts
}

// counts are what a load may cost a pair of its directions, once there and once
// back.
type counts struct{ waits, reads, writes int }

// piece is how much a peer sends at once, and within what any socket takes.
const piece = 64 << 10

// loads are the benchmark's relay rows. A turn of the loop reads once and writes
// once, however many calls came: the fewest there can be.
func loads() []load {
	large := (4<<20-wire.HeaderLen)/piece + 1
	return []load{
		{"64B", 64, 1, counts{2, 2, 2}},
		{"64B-64-in-flight", 64, 64, counts{2, 2, 2}},
		{"60KiB", 60 << 10, 1, counts{2, 2, 2}},
		{"4MiB", 4<<20 - wire.HeaderLen, 1, counts{2 * large, 2 * large, 2 * large}},
	}
}

// relayed has a pair relay a load there and back once, and counts.
type relayed struct {
	*countedKernel
	round func()
}

func newRelayed(t testing.TB, c load) *relayed {
	l, _, peer, router := newTestPair(t)
	k := &countedKernel{}
	l.kernel = k
	events := make([]unix.EpollEvent, 8)
	var all []byte
	for range c.depth {
		all = append(all, data(wire.Request, 4, 1, string(make([]byte, c.body)))...)
	}
	scratch := make([]byte, 2*piece)
	way := func(from, to int) {
		for rest := all; len(rest) > 0; {
			n, err := unix.Write(from, rest[:min(len(rest), piece)])
			require.NoError(t, err)
			rest = rest[n:]
			l.turn(events)
			for n > 0 {
				got, err := unix.Read(to, scratch)
				require.NoError(t, err)
				n -= got
			}
		}
	}
	r := &relayed{k, func() { way(peer, router); way(router, peer) }}
	r.round() // the loop has its memory and its first events
	*k = countedKernel{}
	return r
}

// The relay's speed, in what no machine changes: how often a loop goes to the kernel
// for a call and its answer, what it copies and what it allocates.
func TestARelayedCallCostsOneWaitReadAndWriteEachWay(t *testing.T) {
	for _, c := range loads() {
		t.Run(c.name, func(t *testing.T) {
			r := newRelayed(t, c)
			rounds := max(3, 3*measureEvery/c.most.reads) // of which some are measured
			for range rounds {
				r.round()
			}
			require.LessOrEqual(t, r.waits, rounds*c.most.waits, "waits")
			require.LessOrEqual(t, r.reads, rounds*c.most.reads, "reads")
			require.LessOrEqual(t, r.writes, rounds*c.most.writes, "writes")
			require.Zero(t, r.copied, "bytes copied")
			require.Zero(t, testing.AllocsPerRun(rounds, r.round), "allocations")
		})
	}
}

// The same counts for a log to keep, with the allocations and bytes of -benchmem.
func BenchmarkRelayedCall(b *testing.B) {
	for _, c := range loads() {
		b.Run(c.name, func(b *testing.B) {
			r := newRelayed(b, c)
			b.ReportAllocs()
			n := 0.0
			for b.Loop() {
				r.round()
				n++
			}
			for unit, count := range map[string]int{"waits": r.waits, "reads": r.reads, "writes": r.writes, "copied-B": r.copied} {
				b.ReportMetric(float64(count)/n, unit+"/op")
			}
		})
	}
}
