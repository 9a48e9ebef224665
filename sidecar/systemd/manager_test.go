package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"scopeward/sidecar/systemd/systemdtest"
)

// newTestManager is a manager as the environment of a fake one tells.
func newTestManager(t *testing.T, watchdog time.Duration) (*Manager, *systemdtest.Manager) {
	t.Helper()
	fake := systemdtest.New(t)
	t.Setenv("NOTIFY_SOCKET", fake.Path())
	t.Setenv("WATCHDOG_USEC", "")
	t.Setenv("WATCHDOG_PID", "")
	if watchdog > 0 {
		t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	}
	return Open(), fake
}

func TestWithoutAManagerNothingIsSaidAndNothingFails(t *testing.T) {
	for _, path := range []string{"", "relative/socket"} {
		t.Setenv("NOTIFY_SOCKET", path)
		m := Open()
		require.False(t, m.Notified())
		require.Zero(t, m.Watchdog())
		require.NoError(t, m.Ready("x"))
		require.NoError(t, m.Reloading())
		require.NoError(t, m.Store([]*os.File{os.Stderr}))
		l, err := m.Listener()
		require.NoError(t, err)
		require.Nil(t, l)
	}
}

func TestMessages(t *testing.T) {
	m, fake := newTestManager(t, 3*time.Second)
	require.True(t, m.Notified())
	require.Equal(t, 3*time.Second, m.Watchdog())
	require.Empty(t, os.Getenv("NOTIFY_SOCKET"), "a child must not speak for us")

	require.NoError(t, m.Ready("listening"))
	require.Equal(t, systemdtest.Message{"READY": "1", "STATUS": "listening"}, fake.Next())
	require.NoError(t, m.Pulse(true, "fine"))
	require.Equal(t, systemdtest.Message{"WATCHDOG": "1", "STATUS": "fine"}, fake.Next())
	require.NoError(t, m.Pulse(false, "not fine"))
	require.Equal(t, systemdtest.Message{"STATUS": "not fine"}, fake.Next())
	require.NoError(t, m.Stopping(2*time.Second))
	require.Equal(t, systemdtest.Message{"STOPPING": "1", "EXTEND_TIMEOUT_USEC": "2000000"}, fake.Next())
}

// A manager takes a reload for the one that it asked for by its time.
func TestReloadingSaysWhenByTheMonotonicClock(t *testing.T) {
	m, fake := newTestManager(t, 0)
	before := monotonicUsec(t)
	require.NoError(t, m.Reloading())
	msg := fake.Next()
	require.Equal(t, "1", msg["RELOADING"])
	at, err := strconv.ParseInt(msg["MONOTONIC_USEC"], 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, at, before)
	require.LessOrEqual(t, at, monotonicUsec(t))
	require.Len(t, msg, 2)
}

func monotonicUsec(t *testing.T) int64 {
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return ts.Nano() / 1000
}

func TestAStatusIsOneLine(t *testing.T) {
	m, fake := newTestManager(t, 0)
	require.NoError(t, m.Pulse(false, "named \"x\nWATCHDOG=1\nSTOPPING=1\""))
	require.Equal(t, systemdtest.Message{"STATUS": `named "x WATCHDOG=1 STOPPING=1"`}, fake.Next())
}

func TestAManagerThatIsGoneIsAnError(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, Open().Ready("x"), "service manager")
}

func TestStoredFilesKeepTheirNamesAndAreNotPolled(t *testing.T) {
	m, fake := newTestManager(t, 0)
	// A pipe without its other end polls with an error, as a BPF map does.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	r.Close()
	dup, err := unix.Dup(int(w.Fd()))
	require.NoError(t, err)
	named := os.NewFile(uintptr(dup), "a-map")
	require.NoError(t, m.Store([]*os.File{named}))
	named.Close()
	require.Equal(t, systemdtest.Message{"FDSTORE": "1", "FDNAME": "a-map", "FDPOLL": "0"}, fake.Next())
	stored := fake.Stored()
	require.Len(t, stored, 1)
	require.Equal(t, "a-map", stored[0].Name())
}

// listening is a socket as a manager opens it.
func listening(t *testing.T, multipath bool, network, addr string) *os.File {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(multipath)
	l, err := lc.Listen(t.Context(), network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	f, err := l.(interface{ File() (*os.File, error) }).File()
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
