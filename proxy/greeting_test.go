package proxy

import (
	"bytes"
	"context"
	"net"
	"slices"
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

// behind sends tail in one piece with the second write, the client's proof.
type behind struct {
	net.Conn
	n    int
	tail []byte
}

func (c *behind) Write(b []byte) (int, error) {
	if c.n++; c.n == 2 {
		_, err := c.Conn.Write(append(bytes.Clone(b), c.tail...))
		return len(b), err
	}
	return c.Conn.Write(b)
}

func TestFramesInOnePieceWithTheProofAreServed(t *testing.T) {
	f := newFront(t)
	file, err := connfile.Read(f.file)
	require.NoError(t, err)
	for range 2 * maxSpares { // with a spare upstream connection and without
		c := f.socket()
		require.NoError(t, c.SetDeadline(time.Now().Add(15*time.Second)))
		describe := frame(wire.Request, 7, doc{"op": wire.OpServerDescribe})
		_, err := handshake.Client(&behind{Conn: c, tail: describe}, file.Key, file.DaemonID, handshake.RoleClient)
		require.NoError(t, err)
		answer, err := wire.ReadFrame(c)
		require.NoError(t, err)
		require.Equal(t, wire.Response, answer.Type)
		require.Equal(t, uint64(7), answer.Corr)
		require.Contains(t, string(answer.Body), wire.CapScopes)
	}
}

func TestSparesAreClientsThatStand(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	key, id := bytes.Repeat([]byte{1}, handshake.MinKey), bytes.Repeat([]byte{2}, handshake.DaemonIDLen)
	conns, roles := make(chan net.Conn, 64), make(chan string, 64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(conns)
				return
			}
			hello, _ := handshake.Server(c, handshake.Params{Key: key, DaemonID: id})
			roles <- hello.Role
			conns <- c
		}
	}()
	s := newSpares(Upstream{Addr: l.Addr().String(), Key: key, DaemonID: id})
	_, ok := s.take(handshake.RoleClient)
	require.False(t, ok, "none before the first peer")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.fill(ctx, zap.NewNop())
	}()
	full := func() {
		t.Helper()
		for range maxSpares {
			require.Equal(t, handshake.RoleClient, <-roles)
		}
		require.Eventually(t, func() bool { return !s.wants() }, routertest.Patience, 1)
	}
	full()
	_, ok = s.take(handshake.RoleWatchdog)
	require.False(t, ok, "another role has none")
	for range maxSpares { // the router closes them all
		require.NoError(t, (<-conns).Close())
	}
	stand := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.kept, func(fd int) bool {
			_, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			return err == unix.EAGAIN
		})
	}
	require.Eventually(t, func() bool { return !stand() }, routertest.Patience, 1, "the closes arrive")
	_, ok = s.take(handshake.RoleClient)
	require.False(t, ok, "a closed one is not given")
	full()
	cancel()
	<-done
	_, ok = s.take(handshake.RoleClient)
	require.False(t, ok, "none when its world has ended")
	require.NoError(t, l.Close())
	for c := range conns {
		c.Close()
	}
}
