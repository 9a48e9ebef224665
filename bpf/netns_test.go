package bpf

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Another network namespace has the same loopback addresses and the same ports.
// While an honest client waits in SYN-SENT, a process over there connects from
// the same address and port to the same address and port.
func TestTupleCollisionFromAnotherNetns_NobodyTakesTheOthersName(t *testing.T) {
	needRoot(t)
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	require.NoError(t, shrinkQueue(l))
	filler, honest, other := newChild(t), newChild(t), newChild(t)

	filler.do(t, "connect v4 %s", l.Addr())
	source := freePort(t)
	honest.do(t, "connect v4-nonblocking %s %s", l.Addr(), source)
	require.Equal(t, 1, entries(t, a.hooks.tuples), "the honest client waits")

	other.do(t, "netns")
	other.do(t, "stuff %s", l.Addr())
	other.do(t, "connect v4-nonblocking %s %s", l.Addr(), source)
	require.Equal(t, 2, entries(t, a.hooks.tuples), "both wait, and are two")

	require.Equal(t, filler.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
	s := mustAccept(t, l) // at the honest client's next SYN, a second later
	require.Equal(t, source, s.RemoteAddr().String())
	require.Equal(t, honest.pid(), mustKnow(t, a, s).PID)
}

// The other way round: what was noted over there names nobody here. The local
// client's own note is taken away, so that only a wrong one could be found.
func TestTupleOfAnotherNetns_DoesNotNameALocalConnection(t *testing.T) {
	needRoot(t)
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	require.NoError(t, shrinkQueue(l))
	local, other := newChild(t), newChild(t)

	source := freePort(t)
	local.do(t, "connect v4 %s", l.Addr())
	local.do(t, "connect v4-nonblocking %s %s", l.Addr(), source)
	var key [tupleLen]byte
	it := a.hooks.tuples.Iterate()
	require.True(t, it.Next(&key, new([originLen]byte)))
	require.NoError(t, a.hooks.tuples.Delete(key))

	other.do(t, "netns")
	other.do(t, "stuff %s", l.Addr())
	other.do(t, "connect v4-nonblocking %s %s", l.Addr(), source)
	require.Equal(t, 1, entries(t, a.hooks.tuples))

	require.Equal(t, local.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
	s := mustAccept(t, l)
	require.Equal(t, source, s.RemoteAddr().String())
	require.False(t, mustPeer(t, a, s).Process().Known)
}

// tupleLen is the size of struct tuple in attribute.c.
const tupleLen = 48

// nobodysAddr is where a port that was let go stays free: everybody else of this
// host listens on 127.0.0.1 and connects from there.
const nobodysAddr = "127.0.0.2:0"

// freePort is a loopback address with a port that was free just now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", nobodysAddr)
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// The handshake's other shapes change which side is established first.
func TestOddHandshakesAreAttributed(t *testing.T) {
	needRoot(t)
	for _, tc := range []struct{ name, sysctl, value, kind string }{
		{"SYN cookies", "tcp_syncookies", "2", "v4"},
		{"fast open, passive side first", "tcp_fastopen", "519", "fastopen"}, // both ways, no cookie asked
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newTestAttributor(t, Params{})
			l, c := inNewNetns(t, func() error {
				return os.WriteFile("/proc/sys/net/ipv4/"+tc.sysctl, []byte(tc.value), 0)
			})
			require.NoError(t, a.SetPort(portOf(l), RoleOwn))
			if tc.kind == "fastopen" {
				setFastOpen(t, l)
			}
			before := netstat(t, c)
			for range 3 {
				c.do(t, "connect %s %s", tc.kind, l.Addr())
				require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
			}
			after := netstat(t, c)
			if tc.kind == "fastopen" {
				require.Equal(t, before["TCPFastOpenPassive"]+3, after["TCPFastOpenPassive"], "the SYNs carried data")
			} else {
				require.Equal(t, before["SyncookiesRecv"]+3, after["SyncookiesRecv"], "the ACKs carried cookies")
			}
		})
	}
}

// inNewNetns makes a listener and a child in a network namespace of their own.
func inNewNetns(t *testing.T, prepare func() error) (*net.TCPListener, *child) {
	t.Helper()
	var l *net.TCPListener
	var c *child
	done := make(chan error)
	go func() {
		// The thread has left the others' namespace; unlocked, it would come back to
		// them. Locked it ends with the goroutine.
		runtime.LockOSThread()
		err := enterNetns()
		if err == nil {
			err = prepare()
		}
		if err == nil {
			l, err = ListenTCP(testContext(t), "127.0.0.1:0")
		}
		if err == nil {
			c = newChild(t)
		}
		done <- err
	}()
	require.NoError(t, <-done)
	t.Cleanup(func() { l.Close() })
	return l, c
}

func setFastOpen(t *testing.T, l *net.TCPListener) {
	t.Helper()
	sc, err := l.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, sc.Control(func(fd uintptr) {
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_FASTOPEN, 16))
	}))
}

// netstat are the extended TCP counters of a child's network namespace.
func netstat(t *testing.T, c *child) map[string]int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netstat", c.pid()))
	require.NoError(t, err)
	counters := map[string]int{}
	lines := strings.Split(string(b), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for j := 1; j < len(names); j++ {
			var v int
			_, _ = fmt.Sscan(values[j], &v) // counters over an int are none of ours
			counters[names[j]] = v
		}
	}
	return counters
}
