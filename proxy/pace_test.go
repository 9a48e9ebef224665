package proxy

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"scopeward/proxy/wire"
)

// corrs are the corrs of the frames that went to the router.
func (e *end) corrs() (list []uint64) {
	for _, f := range e.toRouter() {
		list = append(list, f.Corr)
	}
	return list
}

func TestOpensWaitForUnitsInOrderAndCallsGoPast(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.s.units = requestUnits
	var flood [][]byte
	for corr := range uint64(3) { // with a scope and without one
		d := doc{}
		if corr == 0 {
			d["scope"] = selector("s", 1)
		}
		flood = append(flood, frame(wire.Request, corr+1, openBody(d)))
	}
	c.fromPeer(flood...)
	require.Equal(t, []uint64{1}, c.corrs())
	require.True(t, c.s.Short())
	c.fromPeer(data(wire.Request, 5, 1, "call"))
	require.Equal(t, uint16(5), r.one(c.toRouter()).Channel)

	c.s.Refill(unitsBesideCalls)
	require.Equal(t, []uint64{2}, c.corrs())
	for range requestUnits/unitsBesideCalls - 1 {
		c.s.Refill(unitsBesideCalls)
		require.Empty(t, c.toRouter())
	}
	c.s.Refill(unitsBesideCalls)
	require.Equal(t, []uint64{3}, c.corrs())
	require.False(t, c.s.Short())
	c.s.Refill(unitsAlone)
	require.False(t, c.s.Wants())
	c.s.units = requestUnits
	require.True(t, c.s.Wants(), "before they are used up")
}

func TestEachGoodbyeCostsAUnit(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.s.units = 2
	var flood []byte
	for channel := range uint16(5) {
		flood = wire.AppendGoodbye(flood, channel+1, 7)
	}
	c.fromPeer(flood)
	require.Len(t, c.toRouter(), 2)
	c.fromPeer(data(wire.Request, 4, 7, "behind its Goodbye"), data(wire.Request, 9, 1, "call"))
	require.Equal(t, uint16(9), r.one(c.toRouter()).Channel)
	c.s.Refill(2)
	require.Len(t, c.toRouter(), 2)
	c.s.Refill(2)
	require.Equal(t, []wire.Type{wire.Goodbye, wire.Request}, types(c.toRouter()))
}

func types(frames []wire.Frame) (list []wire.Type) {
	for _, f := range frames {
		list = append(list, f.Type)
	}
	return list
}

func TestAModulesAnswersNeverWaitForUnits(t *testing.T) {
	r := newRig(t)
	m, _ := r.bound()
	m.s.units = 0
	m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
	require.Equal(t, []uint64{41}, m.corrs())
	require.Zero(t, m.s.units)
}

func TestARevocationCostsNoMoreThanItsFrame(t *testing.T) {
	r := newRig(t)
	o := r.module("owner")
	o.sync(1, record("s", 1, directCarrier))
	o.s.units = 2
	o.sync(2)
	require.Equal(t, 1, o.s.units)
}

func TestWhatIsRefusedCostsByItsLength(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.s.units = 2
	call := frame(wire.Request, 3, `{"op":"scope.sync"`+strings.Repeat(" ", 100<<10)+`}`)
	c.fromPeer(call)
	require.Equal(t, wire.CodeNotRegistered, r.code(r.one(c.toPeer())))
	require.Equal(t, 1-requestUnits-len(call)/refusedUnit, c.s.units)
}

func TestWhatTheRouterIsAskedCostsByItsLength(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.s.units = 2
	call := frame(wire.Request, 3, `{"op":"catalog.list"`+strings.Repeat(" ", 100<<10)+`}`)
	c.fromPeer(call)
	require.Equal(t, []uint64{3}, c.corrs())
	require.Equal(t, 2-requestUnits-len(call)/askedUnit, c.s.units)
}

// still returns a pair on a loop that nobody runs, and the far ends of its sockets.
func still(t *testing.T, l *Loop, s *Session) (p *pair, far [2]int) {
	p = &pair{session: s, home: l, done: func(string) {}}
	for i := range p.sides {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		far[i] = fds[1]
		t.Cleanup(func() { unix.Close(fds[1]) })
		p.sides[i] = side{pair: p, dir: direction(i), fd: fds[0]}
	}
	p.loop.Store(l)
	l.adopt(p)
	t.Cleanup(func() { p.loop.Load().drop(p, "the test is over") })
	return p, far
}

func TestWhatWaitsForUnitsGoesBeforeItsPeersClose(t *testing.T) {
	l := stillLoop(t)
	p, far := still(t, l, newSession(1, newRig(t).world))
	p.session.units = 1
	sent := wire.AppendGoodbye(wire.AppendGoodbye(wire.AppendGoodbye(nil, 5, 1), 6, 1), 0, 0)
	_, err := unix.Write(far[toRouter], sent)
	require.NoError(t, err)
	require.NoError(t, unix.Shutdown(far[toRouter], unix.SHUT_WR))
	peer := &p.sides[toRouter]
	peer.readable, peer.hup = true, true
	l.read(peer)
	require.Negative(t, peer.fd, "it is closed")
	got := make([]byte, 2*len(sent))
	n, err := unix.Read(far[toPeer], got)
	require.NoError(t, err)
	require.Equal(t, sent, got[:n])
}

func stillLoop(t *testing.T) *Loop {
	l, err := NewLoop()
	require.NoError(t, err)
	t.Cleanup(func() {
		unix.Close(l.poll)
		unix.Close(l.wake)
	})
	return l
}

func TestUnitsAreFewBesideCalls(t *testing.T) {
	l, other := stillLoop(t), stillLoop(t)
	l.all = []*Loop{l, other}
	p, _ := still(t, l, newSession(1, newRig(t).world))
	for _, c := range []struct{ calls, units int }{{0, unitsAlone}, {1, unitsBesideCalls}, {0, unitsAlone}} {
		p.session.units = -1000
		l.provide(p)
		l.runRation()
		require.Equal(t, -1000, p.session.units, "none before their time")
		other.ration.calls.Add(uint64(c.calls))
		l.ration.since = time.Now().Add(-unitsEvery)
		l.runRation()
		require.Equal(t, -1000+c.units, p.session.units)
	}
	p.session.units = unitsAlone
	l.ration.since = time.Now().Add(-unitsEvery)
	l.runRation()
	require.Empty(t, l.ration.line)
}

func TestALoopComesBackForWhoIsShortOfUnits(t *testing.T) {
	l := stillLoop(t)
	p, _ := still(t, l, newSession(1, newRig(t).world))
	require.Equal(t, -1, l.timeout())
	p.session.units = 0
	p.session.FromPeer(wire.AppendGoodbye(nil, 5, 1))
	l.carry(p, toRouter)
	require.Equal(t, 1, l.timeout())
	l.ration.since = time.Now().Add(-unitsEvery)
	l.runRation()
	require.False(t, p.session.Short())
	require.Equal(t, -1, l.timeout())
}

func TestAPairThatMovesIsGivenUnitsByItsNewLoop(t *testing.T) {
	from, to := stillLoop(t), stillLoop(t)
	p, _ := still(t, from, newSession(1, newRig(t).world))
	p.session.units = 0
	p.session.FromPeer(wire.AppendGoodbye(nil, 5, 1))
	from.provide(p)
	require.Equal(t, 1, from.timeout())
	from.move(p, to)
	require.Equal(t, -1, from.timeout())
	require.Empty(t, from.ration.line)
	to.runPosted()
	require.Equal(t, 1, to.timeout())
	require.Equal(t, []*pair{p}, to.ration.line)
}

func TestOneConnectionAtATimeIsAcceptedBesideCalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	fd, err := detach(l.(*net.TCPListener))
	l.Close()
	require.NoError(t, err)
	on := stillLoop(t)
	e := &ear{server: &Server{slots: make(chan struct{}, 8)}, fd: fd} // it has no world: all are closed
	on.hear(e)
	t.Cleanup(on.deafen)
	waiting := func(n int) { // connects n, and waits until they are there
		for range n {
			c, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
		}
	}
	more := func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		require.NoError(t, err)
		return n > 0
	}

	waiting(3)
	on.accept(e)
	require.False(t, more(), "all, while nobody calls")
	waiting(3)
	on.ration.calls.Add(1)
	e.since = time.Now().Add(time.Hour)
	on.accept(e)
	require.True(t, e.resting, "none too soon")
	e.resting, e.since = false, time.Now().Add(-time.Hour)
	for range 2 {
		on.accept(e)
		require.True(t, more())
		on.ration.calls.Add(1)
		e.since = time.Now().Add(-time.Hour)
	}
	on.accept(e)
	require.False(t, more())
}

func TestLoopsAreInAHurryWhileSomebodyIsShortBesideCalls(t *testing.T) {
	runtime.LockOSThread() // it ends with the test
	policy := func() uint32 {
		attr, err := unix.SchedGetAttr(0, 0)
		require.NoError(t, err)
		return attr.Policy
	}
	if beInTurn(unix.SCHED_BATCH); policy() != unix.SCHED_BATCH {
		t.Skip("this kernel does not let a thread choose SCHED_BATCH")
	}
	l := stillLoop(t)
	p, _ := still(t, l, newSession(1, newRig(t).world))
	short := func(calls uint64) {
		p.session.units = -1000
		p.session.FromPeer(wire.AppendGoodbye(nil, 5, 1))
		l.provide(p)
		l.ration.calls.Add(calls)
		l.ration.since = time.Now().Add(-unitsEvery)
		l.runRation()
		l.runPosted()
	}
	short(0)
	require.EqualValues(t, unix.SCHED_BATCH, policy())
	short(1)
	require.EqualValues(t, unix.SCHED_NORMAL, policy())
	l.relax(time.Now())
	require.EqualValues(t, unix.SCHED_NORMAL, policy())
	l.relax(time.Now().Add(2 * hurryFor))
	require.EqualValues(t, unix.SCHED_BATCH, policy())
}
