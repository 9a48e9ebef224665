package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"scopeward/proxy/wire"
)

// newTestPair is a session on a loop that the test runs by hand, and the far ends
// of its two sockets.
func newTestPair(t testing.TB) (l *Loop, p *pair, peer, router int) {
	t.Helper()
	l, err := NewLoop()
	require.NoError(t, err)
	test, _ := t.(*testing.T)
	p = &pair{session: newRig(test).connect().s, home: l, done: func(string) {}}
	p.loop.Store(l)
	far := [2]int{}
	for d := range p.sides {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		p.sides[d] = side{pair: p, dir: direction(d), fd: fds[0]}
		far[d] = fds[1]
	}
	l.adopt(p)
	t.Cleanup(func() {
		l.drop(p, "the test is over")
		for _, fd := range []int{far[0], far[1], l.poll, l.wake} {
			unix.Close(fd)
		}
	})
	return l, p, far[toRouter], far[toPeer]
}

// relay sends b from a far end and has the loop read it.
func (p *pair) relay(t *testing.T, far int, d direction, b []byte) {
	t.Helper()
	n, err := unix.Write(far, b)
	require.NoError(t, err)
	require.Len(t, b, n)
	p.sides[d].readable = true
	p.loop.Load().read(&p.sides[d])
}

// drain reads what a far end has been sent.
func drain(fd int) (n int) {
	b := make([]byte, readSize)
	for {
		got, err := unix.Read(fd, b)
		if err != nil || got == 0 {
			return n
		}
		n += got
	}
}

func (t *times) count() (n uint64) {
	for i := range t.within {
		n += t.within[i].Load()
	}
	return n + t.over.Load()
}

func TestOneReadInSixtyFourIsMeasured(t *testing.T) {
	l, p, peer, router := newTestPair(t)
	call := data(wire.Request, 4, 1, "a call")
	for range 2 * measureEvery {
		p.relay(t, peer, toRouter, call)
		p.relay(t, router, toPeer, call)
		drain(router)
		drain(peer)
	}
	require.EqualValues(t, 4, l.times.count())
	require.Positive(t, l.times.sum.Load())
}

// What is answered here is not on its way to the other side.
func TestAReadThatRelaysNothingIsNotMeasured(t *testing.T) {
	l, p, peer, router := newTestPair(t)
	sync := frame(wire.Request, 3, doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []doc{}})
	for range measureEvery {
		p.relay(t, peer, toRouter, sync)
		require.Positive(t, drain(peer))
		require.Zero(t, drain(router))
	}
	require.Zero(t, l.times.count())
	require.Zero(t, p.sides[toPeer].since, "nor is what is sent there later")
}

// A measurement ends when the other side has taken the last byte, not before.
func TestARelayIsMeasuredToTheLastByte(t *testing.T) {
	l, p, peer, router := newTestPair(t)
	require.NoError(t, unix.SetsockoptInt(p.sides[toPeer].fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1))
	large := data(wire.Request, 4, 1, string(make([]byte, 64<<10)))
	l.times.reads = measureEvery - 1
	p.relay(t, peer, toRouter, large)
	require.NotEmpty(t, p.sides[toPeer].out, "the router's socket is full")
	require.Zero(t, l.times.count())
	for got := 0; got < len(large); {
		require.Zero(t, l.times.count())
		got += drain(router)
		l.flush(&p.sides[toPeer])
		if len(p.sides[toPeer].out) == 0 {
			got += drain(router)
			require.Equal(t, len(large), got)
		}
	}
	require.EqualValues(t, 1, l.times.count())
}

func TestRelayTimesAreTheLoopsTogether(t *testing.T) {
	s := &Server{loops: []*Loop{{}, {}}}
	s.loops[0].times.within[0].Store(2)
	s.loops[1].times.within[0].Store(3)
	s.loops[1].times.over.Store(1)
	s.loops[0].times.sum.Store(5)
	s.loops[1].times.sum.Store(6)
	require.Equal(t, RelayTimes{Within: [RelayBuckets]uint64{5}, Over: 1, Sum: 11}, s.RelayTimes())
	require.Equal(t, "1µs 4.194304s", RelayBound(0).String()+" "+RelayBound(RelayBuckets-1).String())
}
