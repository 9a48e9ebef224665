package proxy

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// slowFacts attributes nobody before it is told to.
type slowFacts struct {
	asked chan Socket
	once  sync.Once
	leave chan struct{}
	calls chan string
}

func newSlowFacts() *slowFacts {
	return &slowFacts{
		asked: make(chan Socket, 16), leave: make(chan struct{}), calls: make(chan string, 16),
	}
}

func (f *slowFacts) Accepted(_ ConnID, s Socket, mayWait bool) bool {
	if !mayWait {
		return false
	}
	f.asked <- s
	<-f.leave
	f.calls <- "accepted"
	return true
}

func (f *slowFacts) Closed(ConnID) { f.calls <- "closed" }

// name lets everybody be attributed.
func (f *slowFacts) name() { f.once.Do(func() { close(f.leave) }) }

// dialled authenticates a connection that says nothing yet.
func (f *front) dialled() net.Conn {
	f.t.Helper()
	file, err := connfile.Read(f.file)
	require.NoError(f.t, err)
	c, err := connfile.Dial(f.t.Context(), file, handshake.RoleClient)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { c.Close() })
	require.NoError(f.t, c.SetDeadline(time.Now().Add(routertest.Patience)))
	return c
}

func TestASessionBeginsWhenItsPeerHasBeenAttributed(t *testing.T) {
	slow := newSlowFacts()
	f := newFrontWith(t, slow)
	t.Cleanup(slow.name)
	c := f.dialled()
	_, err := c.Write(frame(wire.Request, 7, doc{"op": wire.OpServerDescribe}))
	require.NoError(t, err)
	s := <-slow.asked
	require.NotZero(t, s.Cookie)
	require.Equal(t, c.LocalAddr().String(), s.Remote.String())
	require.Equal(t, c.RemoteAddr().String(), s.Local.String())

	// It authenticated: everything else waits for its name.
	require.Eventually(t, func() bool {
		f.server.mu.Lock()
		defer f.server.mu.Unlock()
		for g := range f.server.greetings {
			return g.waits
		}
		return len(f.server.conns) > 0
	}, routertest.Patience, time.Millisecond)
	require.Len(t, f.server.slots, 1, "it has no session yet")
	slow.name()
	answer, err := wire.ReadFrame(c)
	require.NoError(t, err)
	require.Equal(t, uint64(7), answer.Corr)
	require.Empty(t, f.server.slots)
}

// quitter leaves in place of its second write, the client's proof.
type quitter struct {
	net.Conn
	n int
}

func (c *quitter) Write(b []byte) (int, error) {
	if c.n++; c.n == 2 {
		c.Close()
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}

func TestAPeerThatLeavesBeforeItsAttributionIsForgottenAfterIt(t *testing.T) {
	slow := newSlowFacts()
	f := newFrontWith(t, slow)
	t.Cleanup(slow.name)
	file, err := connfile.Read(f.file)
	require.NoError(t, err)
	_, err = handshake.Client(&quitter{Conn: f.socket()}, file.Key, file.DaemonID, handshake.RoleClient)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	<-slow.asked
	require.Eventually(t, func() bool {
		f.server.mu.Lock()
		defer f.server.mu.Unlock()
		return len(f.server.greetings) == 0
	}, routertest.Patience, time.Millisecond)
	require.Len(t, f.server.slots, 1, "its place is held as long as somebody works for it")
	slow.name()
	for _, want := range []string{"accepted", "closed"} {
		select {
		case got := <-slow.calls:
			require.Equal(t, want, got)
		case <-time.After(routertest.Patience):
			require.Fail(t, "it was not "+want)
		}
	}
	f.server.slots <- struct{}{} // there is room
	<-f.server.slots
}

func TestClientsSpreadOverTheirLoops(t *testing.T) {
	f := newFront(t)
	for range 6 {
		f.client().Settle()
	}
	require.EqualValues(t, 3, f.server.loops[1].load.Load())
	require.EqualValues(t, 3, f.server.loops[2].load.Load())
}

// listenAside listens where nobody else does: a port that is let go there is not
// another's the next moment.
func listenAside(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	return l
}

func TestNobodyConnectsAfterDeafenAndSessionsGoOn(t *testing.T) {
	f := newFront(t)
	c := f.client()
	l := listenAside(t)
	require.NoError(t, f.server.Serve(l))
	d, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, d.Close())
	f.server.Deafen()
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
	c.Settle()
}

// The service manager holds a socket that it gave us.
func TestWhoIsDeafenedHearsNothingOfASocketThatOthersHold(t *testing.T) {
	f := newFront(t)
	l := listenAside(t)
	held, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, f.server.Serve(l))
	f.server.Deafen()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	on, events := f.server.loops[1], make([]unix.EpollEvent, 8)
	n, err := unix.EpollWait(on.poll, events, 0)
	require.NoError(t, err)
	for _, ev := range events[:n] {
		require.EqualValues(t, on.wake, ev.Fd)
	}
}

func TestAnEarThatRestsListensAgain(t *testing.T) {
	f := newFront(t)
	l := f.server.loops[1]
	rested := make(chan struct{})
	require.True(t, l.post(func() {
		for _, e := range l.ears {
			l.rest(e, time.Now().Add(restFor))
		}
		close(rested)
	}))
	<-rested
	f.client().Settle()
}

func TestServeTakesNoMoreAfterShutdown(t *testing.T) {
	f := newFront(t)
	s, err := NewServer(Params{Log: zap.NewNop(), Peers: f.facts, Launches: f.facts, Recorder: f.facts})
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(t.Context()))
	l := listenAside(t)
	require.ErrorIs(t, s.Serve(l), net.ErrClosed)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}
