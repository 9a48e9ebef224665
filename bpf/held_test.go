package bpf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However many connections a process has, it is held once, until the last of them
// lets go.
func TestAProcessIsHeldOnce(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c, other := newChild(t), newChild(t)
	var peers []*Peer
	for range 3 {
		c.do(t, "connect v4 %s", l.Addr())
		peers = append(peers, mustPeer(t, a, mustAccept(t, l)))
	}
	other.do(t, "connect v4 %s", l.Addr())
	second := mustPeer(t, a, mustAccept(t, l))
	require.Len(t, a.held.by, 2)
	require.NoError(t, peers[0].Close())
	require.NoError(t, peers[0].Close(), "closing twice gives back one share")
	require.NoError(t, peers[1].Close())
	require.False(t, peers[0].Alive())
	require.True(t, peers[2].Alive())
	require.True(t, second.Alive())
	c.end()
	require.Eventually(t, func() bool { return !peers[2].Alive() }, time.Minute, time.Millisecond)
	require.NoError(t, peers[2].Close())
	require.Len(t, a.held.by, 1)
	require.NoError(t, second.Close())
	require.Empty(t, a.held.by)
}
