package bpf

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clockSlack is how far apart one instant may lie on two clocks: they are read one
// after the other, and a busy machine may stop us in between.
const clockSlack = 2 * time.Second

// addrFor is the listener's address that a kind of connect goes to.
func addrFor(six bool, l4, l6 *net.TCPListener) string {
	if six {
		return l6.Addr().String()
	}
	return l4.Addr().String()
}

func TestEveryKindOfConnectIsAttributed(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l4, l6 := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "[::1]:0")
	require.NoError(t, a.SetPorts(RoleOwn, portOf(l4), portOf(l6)))
	c := newChild(t)
	for _, k := range connectKinds {
		t.Run(k.name, func(t *testing.T) {
			before := bootNow()
			c.do(t, "connect %s %s", k.name, addrFor(k.six, l4, l6))
			l := l4
			if k.six {
				l = l6
			}
			p := mustPeer(t, a, mustAccept(t, l))
			got := p.Process()
			require.True(t, got.Known, got.Reason)
			require.Equal(t, c.pid(), got.PID)
			require.Equal(t, os.Getuid(), got.UID)
			require.Equal(t, SourceEBPF, got.Source)
			require.Empty(t, got.Reason)
			require.True(t, strings.HasSuffix(got.Exe, ".test"), got.Exe)
			id, err := InstanceOf(c.pid())
			require.NoError(t, err)
			require.Equal(t, id, got.Instance())
			require.WithinRange(t, got.ConnectedAt, wallTime(before).Add(-clockSlack), time.Now().Add(clockSlack))
			require.True(t, p.Alive())
		})
	}
}

// A dual-stack listener's accepted sockets are IPv6 sockets with mapped
// addresses; clients may be either.
func TestDualStackListenerIsAttributed(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "[::]:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c := newChild(t)
	for kind, host := range map[string]string{"v4": "127.0.0.1", "mapped": "127.0.0.1", "v6": "::1", "mptcp": "127.0.0.1"} {
		c.do(t, "connect %s %s", kind, net.JoinHostPort(host, strconv.Itoa(int(portOf(l)))))
		require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, l)).PID, kind)
	}
}

func TestManyConnectsFromManyProcessesAreEachAttributed(t *testing.T) {
	const processes, each = 50, 100
	a := newTestAttributor(t, Params{})
	l4, l6 := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "[::1]:0")
	require.NoError(t, a.SetPorts(RoleOwn, portOf(l4), portOf(l6)))

	children := make([]*child, processes)
	for i := range children {
		children[i] = newChild(t)
	}
	results := make(chan error, processes*each)
	var accepting sync.WaitGroup
	for _, l := range []*net.TCPListener{l4, l6} {
		accepting.Go(func() {
			for {
				c, err := l.AcceptTCP()
				if err != nil {
					return // the test is over
				}
				p := a.Peer(SocketOf(c))
				results <- compareWithSaid(c, p)
				p.Close()
				c.Close()
			}
		})
	}
	for _, c := range children {
		c.start(t, "many %d %s %s", each, l4.Addr(), l6.Addr())
	}
	for _, c := range children {
		c.answer(t)
	}
	for range processes * each {
		select {
		case err := <-results:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			require.Fail(t, "a connection is missing")
		}
	}
	l4.Close()
	l6.Close()
	accepting.Wait()
	st := a.Status()
	require.EqualValues(t, processes*each, st.Known)
	require.Zero(t, st.Unknown)
	require.Zero(t, st.Lost)
}

// compareWithSaid reads the PID that the client says it is.
func compareWithSaid(c *net.TCPConn, p *Peer) error {
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	var b [8]byte
	for n := 0; n < len(b); {
		m, err := c.Read(b[n:])
		if err != nil {
			return fmt.Errorf("%s says nothing: %w", c.RemoteAddr(), err)
		}
		n += m
	}
	said, err := strconv.Atoi(strings.TrimSpace(string(b[:])))
	if err != nil {
		return err
	}
	if got := p.Process(); !got.Known || got.PID != said {
		return fmt.Errorf("process %d is said to be %+v", said, got)
	}
	return nil
}

func TestOnlyOurPortsAreLookedAt(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l, other := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c := newChild(t)
	c.do(t, "connect v4 %s", other.Addr())
	got := mustPeer(t, a, mustAccept(t, other)).Process()
	require.False(t, got.Known)
	require.Equal(t, "the hooks have no record of this connect", got.Reason)
	require.Equal(t, Instance{}, got.Instance())
	fd := failBeforeSYN(t, portOf(other), 0)
	require.Zero(t, entries(t, a.hooks.connects), "the kernel doesn't even note it")
	require.NoError(t, closeFD(fd))

	// A role's ports are replaced, not added to.
	require.NoError(t, a.SetPort(portOf(other), RoleOwn))
	c.do(t, "connect v4 %s", other.Addr())
	require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, other)).PID)
	c.do(t, "connect v4 %s", l.Addr())
	require.False(t, mustPeer(t, a, mustAccept(t, l)).Process().Known)
}

func TestARecordIsUsedUp(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	newChild(t).do(t, "connect v4 %s", l.Addr())
	s := mustAccept(t, l)
	require.True(t, a.Process(SocketOf(s)).Known)
	require.False(t, a.Process(SocketOf(s)).Known)
}

// A connect that the hooks did not note never takes the name of an earlier one
// with the same ends, even if that was left behind.
func TestAnUnseenConnectInheritsNoName(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	require.NoError(t, shrinkQueue(l))
	earlier, unseen := newChild(t), newChild(t)
	source := freePort(t)
	earlier.do(t, "connect v4 %s", l.Addr())
	earlier.do(t, "connect v4-nonblocking %s %s", l.Addr(), source)
	var key [tupleLen]byte
	var value [originLen]byte
	it := a.hooks.tuples.Iterate()
	require.True(t, it.Next(&key, &value))
	earlier.do(t, "close")
	mustAccept(t, l)
	require.Zero(t, entries(t, a.hooks.tuples))
	require.NoError(t, a.hooks.tuples.Put(key, value))

	require.NoError(t, a.hooks.links[2].Detach()) // note_connect4
	unseen.do(t, "connect v4 %s %s", l.Addr(), source)
	s := mustAccept(t, l)
	require.Equal(t, source, s.RemoteAddr().String())
	require.False(t, mustPeer(t, a, s).Process().Known)
}

func TestAfterCloseNobodyIsKnown(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c := newChild(t)
	c.do(t, "connect v4 %s", l.Addr())
	require.NoError(t, a.Close())
	got := mustPeer(t, a, mustAccept(t, l)).Process()
	require.False(t, got.Known)
	require.NotEmpty(t, got.Reason)
}
