package systemd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/sidecar/systemd/systemdtest"
)

// start runs the test binary as the manager's child and returns what it says.
func start(t *testing.T, fake *systemdtest.Manager, role string, sockets ...*os.File) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := fake.Command(ctx, 2*time.Second, sockets, exe)
	cmd.Env = append(cmd.Env, envRole+"="+role)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	fake.Await("READY", "1")
	return string(out)
}

// What one process stores, the next one finds under the same names, beside the
// socket; and what it stores takes the place of what it found.
func TestAProcessFindsTheSocketAndWhatTheOneBeforeStored(t *testing.T) {
	socket := listening(t, false, "tcp", "127.0.0.1:0")
	l, err := net.FileListener(socket)
	require.NoError(t, err)
	defer l.Close()
	fake := systemdtest.New(t)
	require.Equal(t, "watchdog 2s\nlistener "+l.Addr().String()+"\n", start(t, fake, "one and two", socket))
	require.Equal(t, "watchdog 2s\ninherited one\ninherited two\nlistener "+l.Addr().String()+"\n", start(t, fake, "one and two", socket))
	require.Len(t, fake.Stored(), 2)
	start(t, fake, "nothing", socket)
	require.Empty(t, fake.Stored(), "who stores nothing leaves nothing of the one before")
}

func TestAnotherProcessesDescriptorsAreNotOurs(t *testing.T) {
	t.Setenv("LISTEN_PID", "1")
	t.Setenv("LISTEN_FDS", "1")
	m := Open()
	require.Empty(t, m.Inherited())
	require.Empty(t, os.Getenv("LISTEN_FDS"))
}

func TestASocketThatIsNotForUs(t *testing.T) {
	for _, tc := range []struct {
		name    string
		sockets []*os.File
		says    string
	}{
		{"two", []*os.File{listening(t, false, "tcp4", "127.0.0.1:0"), listening(t, false, "tcp4", "127.0.0.1:0")}, "there are 2 of them"},
		{"open to others", []*os.File{listening(t, false, "tcp4", "0.0.0.0:0")}, "others can reach"},
		{"multi-path", []*os.File{listening(t, true, "tcp4", "127.0.0.1:0")}, "multi-path"},
		{"no TCP", []*os.File{listening(t, false, "unix", filepath.Join(t.TempDir(), "s"))}, "TCP is wanted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "multi-path" && !hasMultipath(t) {
				t.Skip("this kernel has no multi-path TCP")
			}
			out := start(t, systemdtest.New(t), "one and two", tc.sockets...)
			require.Contains(t, out, ErrListener.Error())
			require.Contains(t, out, tc.says)
		})
	}
}

func TestNoSocketIsNoError(t *testing.T) {
	require.True(t, strings.HasSuffix(start(t, systemdtest.New(t), "nothing"), "no listener\n"))
}

func hasMultipath(t *testing.T) bool {
	t.Helper()
	enabled, err := os.ReadFile("/proc/sys/net/mptcp/enabled")
	return err == nil && strings.TrimSpace(string(enabled)) == "1"
}
