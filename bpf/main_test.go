package bpf

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		childMain()
	}
	goleak.VerifyTestMain(m)
}

// needHooks skips where the host can't run the programs, and says in one line
// why. What this package itself gets wrong is never a reason.
func needHooks(t testing.TB) {
	t.Helper()
	for _, c := range Probe() {
		if c.State == StateFail {
			t.Skipf("real eBPF: %s: %s: %s", c.Name, c.Found, c.Remedy)
		}
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("root is missing")
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newTestAttributor has the hooks attached, until the test ends.
func newTestAttributor(t testing.TB, p Params) *Attributor {
	t.Helper()
	needHooks(t)
	a, err := Open(p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// newTestListener listens until the test ends.
func newTestListener(t testing.TB, addr string) *net.TCPListener {
	t.Helper()
	l, err := ListenTCP(testContext(t), addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	require.NoError(t, l.SetDeadline(time.Now().Add(3*time.Minute)))
	return l
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// mustAccept takes the next connection of l.
func mustAccept(t testing.TB, l *net.TCPListener) *net.TCPConn {
	t.Helper()
	c, err := l.AcceptTCP()
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// mustPeer asks who connected c, and lets go when the test ends.
func mustPeer(t testing.TB, a *Attributor, c *net.TCPConn) *Peer {
	t.Helper()
	p := a.Peer(SocketOf(c))
	t.Cleanup(func() { p.Close() })
	return p
}

// mustKnow is the process that connected c, which has to be known.
func mustKnow(t testing.TB, a *Attributor, c *net.TCPConn) Process {
	t.Helper()
	got := mustPeer(t, a, c).Process()
	require.True(t, got.Known, "unknown: %s", got.Reason)
	return got
}
