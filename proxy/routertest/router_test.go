package routertest

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"

	"github.com/stretchr/testify/require"
)

func TestOverLoopback(t *testing.T) {
	r, err := NewRouter(Config{})
	require.NoError(t, err)
	defer r.Close()
	m := DialModule(t, r.Path())
	m.Hello("tool")
	m.Serve()
	c := Dial(t, r.Path())
	rt := c.Open("tool")
	big := string(make([]byte, 6<<20))
	require.Equal(t, big, rt.Call(big))
	f, err := connfile.Read(r.Path())
	require.NoError(t, err)
	require.Equal(t, r.File(), f)
	path := r.Path()
	r.Close()
	c.Ended()
	require.NoFileExists(t, path)
	_, err = connfile.Dial(context.Background(), f, "client")
	require.Error(t, err)
}

func TestHandshakeIsBoundedInTimeAndNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{})
		var silent []net.Conn
		for range handshake.MaxUnauthenticated {
			silent = append(silent, r.Pipe())
		}
		synctest.Wait()
		over, start := r.Pipe(), time.Now()
		_, err := over.Read(make([]byte, 1))
		require.Error(t, err)
		require.Zero(t, time.Since(start), "one too many is closed at once")
		elapse(handshake.Timeout + time.Millisecond)
		synctest.Wait()
		r.client().Settle()
		for _, nc := range silent {
			_, err := nc.Read(make([]byte, 1))
			require.Error(t, err)
			nc.Close()
		}
		over.Close()
	})
}
