package bpf

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newTestProcfs(t testing.TB) *Attributor {
	t.Helper()
	a, err := OpenProcfs(Params{}, nil)
	require.NoError(t, err)
	require.NoError(t, a.SelfProbe(testContext(t)))
	return a
}

func TestProcfs_EveryKindOfConnectIsAttributed(t *testing.T) {
	a := newTestProcfs(t)
	l4, l6 := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "[::1]:0")
	c := newChild(t)
	for _, k := range connectKinds {
		t.Run(k.name, func(t *testing.T) {
			l := l4
			if k.six {
				l = l6
			}
			c.do(t, "connect %s %s", k.name, l.Addr())
			p := mustPeer(t, a, mustAccept(t, l))
			got := p.Process()
			require.True(t, got.Known, got.Reason)
			require.Equal(t, mustInstance(t, c.pid()), got.Instance())
			require.Equal(t, os.Getuid(), got.UID)
			require.Equal(t, SourceProcfs, got.Source)
			require.Zero(t, got.ConnectedAt)
			require.True(t, p.Alive())
		})
	}
	require.EqualValues(t, len(connectKinds), a.Status().Known)
}

func TestProcfs_AForkedHolderBelongsToItsParent(t *testing.T) {
	a := newTestProcfs(t)
	l := newTestListener(t, "127.0.0.1:0")
	c := newChild(t)
	c.do(t, "connect v4 %s", l.Addr())
	c.do(t, "fork")
	require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
}

func TestProcfs_UnrelatedHoldersAreUnknown(t *testing.T) {
	a := newTestProcfs(t)
	l := newTestListener(t, "127.0.0.1:0")
	one, two := newChild(t), newChild(t)
	one.do(t, "connect v4 %s", l.Addr())
	one.handTo(t, two)
	got := mustPeer(t, a, mustAccept(t, l)).Process()
	require.False(t, got.Known)
	require.Equal(t, "2 unrelated processes hold the other end", got.Reason)
}

// What makes this source the weaker one: the connector is gone, the holder is
// taken for it.
func TestProcfs_AHolderIsTakenForTheConnector(t *testing.T) {
	a := newTestProcfs(t)
	l := newTestListener(t, "127.0.0.1:0")
	one, two := newChild(t), newChild(t)
	one.do(t, "connect v4 %s", l.Addr())
	one.handTo(t, two)
	one.end()
	require.Equal(t, two.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
}

func TestProcfs_AClosedEndIsUnknown(t *testing.T) {
	a := newTestProcfs(t)
	l := newTestListener(t, "127.0.0.1:0")
	c := newChild(t)
	c.do(t, "connect v4 %s", l.Addr())
	c.do(t, "close")
	got := mustPeer(t, a, mustAccept(t, l)).Process()
	require.False(t, got.Known)
	require.Equal(t, "the other end has been closed", got.Reason)
}

func TestProcfs_WhomWeMayNotLookIntoIsUnknown(t *testing.T) {
	needRoot(t)
	l := newTestListener(t, "127.0.0.1:0")
	newChild(t).do(t, "connect v4 %s", l.Addr())
	nobody := newChild(t, asNobody())
	f, err := mustAccept(t, l).File()
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, passFD(nobody.pass, int(f.Fd())))
	require.Equal(t, "no process that we may look into holds the other end", nobody.do(t, "peer"))
}

func TestParseSocket(t *testing.T) {
	const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	_, ok := parseSocket([]byte(heading))
	require.False(t, ok)
	for line, want := range map[string]socket{
		"   1: 0100007F:A1B2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 20 4 30 10 -1": {
			local:  netip.MustParseAddrPort("127.0.0.1:41394"),
			remote: netip.MustParseAddrPort("127.0.0.1:8080"),
			uid:    1000, inode: 4242,
		},
		"   0: 0000000000000000FFFF00000100007F:0016 00000000000000000000000001000000:0050 01 00000000:00000000 00:00000000 00000000     0        0 7 1": {
			local:  netip.MustParseAddrPort("127.0.0.1:22"),
			remote: netip.MustParseAddrPort("[::1]:80"),
			inode:  7,
		},
	} {
		got, ok := parseSocket([]byte(line))
		require.True(t, ok, line)
		require.Equal(t, want, got)
		for cut := range len(strings.TrimRight(line, " 0123456789-")) - 60 {
			_, ok := parseSocket([]byte(line[:cut]))
			require.False(t, ok, line[:cut])
		}
	}
}

func TestParseStat_ANameForgesNoField(t *testing.T) {
	for _, name := range []string{"cat", "a b", "x) R 1 1", ") S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0", "((", ""} {
		line := "42 (" + name + ") S 17 42 42 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 " + strconv.Itoa(99) + " 0 0"
		st, state, ok := parseStat([]byte(line))
		require.True(t, ok, name)
		require.Equal(t, stat{ppid: 17, start: 99}, st, name)
		require.Equal(t, byte('S'), state)
	}
}
