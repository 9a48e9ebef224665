package proxy

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"
	"scopeward/table"
)

func TestServerPassesAClientsCloseOnAtOnce(t *testing.T) {
	f := newFront(t)
	f.module("owner").Sync(1, head("s")).OK()
	tool := f.module("tool").Serve()
	c := f.client()
	c.Open("tool", scope("s"))
	b := tool.NextBind()
	c.Close()
	b.NextGoodbye()
}

func TestServerPassesTheRoutersCloseOnAtOnce(t *testing.T) {
	f := newFront(t)
	c := f.client()
	f.router.Close()
	c.Ended()
}

func TestServerRelaysBodiesOfEverySize(t *testing.T) {
	f := newFront(t)
	f.module("owner").Sync(1, head("s")).OK()
	f.module("tool").Serve()
	route := f.client().Open("tool", scope("s"))
	for _, n := range []int{0, 1, readSize - wire.HeaderLen, readSize, readSize + 1, 3 << 20} {
		body := bytes.Repeat([]byte{'z'}, n)
		require.Contains(t, route.Call(string(body)), string(body))
	}
}

func TestServerCutsAPeerThatHoldsUpADrainInsideAFrame(t *testing.T) {
	f := newFront(t)
	owner := f.module("owner")
	owner.Sync(1, head("s")).OK()
	tool := f.module("tool").Serve()
	c := f.client()
	c.Open("tool", scope("s"))
	b := tool.NextBind()
	other := c.Open("tool")
	// Half a frame to another route: nothing can be put behind it.
	c.SendRaw(wire.Header{Len: 64 << 20, Type: wire.Request, Channel: other.Channel, Epoch: other.Epoch, Corr: 99}.Append(nil))
	c.SendRaw(make([]byte, 1<<16))
	f.until(func(s *Session) bool { return !s.lanes[toRouter].boundary() })
	owner.Sync(2).OK()
	c.Ended()
	b.NextGoodbye()
}

func TestServerDrainIsNotHeldUpByAPeerThatDoesNotRead(t *testing.T) {
	f := newFront(t)
	owner := f.module("owner")
	owner.Sync(1, head("s")).OK()
	tool := f.module("tool").Serve()
	slow, quick := f.client(), f.client()
	rs := slow.Open("tool", scope("s"))
	tool.NextBind()
	rq := quick.Open("tool", scope("s"))
	tool.NextBind()
	slow.Pause()
	blob := bytes.Repeat([]byte{'z'}, 1<<20)
	for range 16 {
		rs.Start(blob)
	}
	owner.Sync(2).OK()
	rq.Drained("scope_ended")
	slow.Resume()
}

func TestServerDetachClosesEverySessionAndANewWorldIsEmpty(t *testing.T) {
	f := newFront(t)
	owner := f.module("owner")
	owner.Sync(1, head("s")).OK()
	before := f.server.World()
	f.server.Detach()
	owner.Ended()
	up := f.router.File()
	f.server.Attach(Upstream{Addr: up.Endpoints[0].Address(), Key: up.Key, DaemonID: up.DaemonID}, "01")
	f.module("tool").Serve()
	require.NotSame(t, before, f.server.World())
	f.client().OpenRefused("scope_not_synced", "tool", scope("s"))
}

func TestServerTakesNoMoreThan256InTheirHandshake(t *testing.T) {
	f := newFront(t)
	for range handshake.MaxUnauthenticated {
		f.server.slots <- struct{}{} // one in its handshake
	}
	file, err := connfile.Read(f.file)
	require.NoError(t, err)
	c, err := net.Dial("tcp", file.Endpoints[0].Address())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "closed unread")
	for range handshake.MaxUnauthenticated {
		<-f.server.slots
	}
	f.client().Settle()
}

func TestServerEvictsByHandWithAReasonThatLetsOpenersComeBack(t *testing.T) {
	f := newFront(t)
	f.module("owner").Sync(1, head("s"), head("u")).OK()
	tool := f.module("tool").Serve()
	c := f.client()
	r := c.Open("tool", scope("s"))
	kept := c.Open("tool", scope("u"))
	b := tool.NextBind()
	tool.NextBind()
	n := f.server.Evict(t.Context(), 0, func(id table.ScopeID) bool { return id.Ref == "s" })
	require.Equal(t, 1, n)
	r.Drained("restart")
	b.NextGoodbye()
	require.Contains(t, kept.Call("x"), "x")
	c.Open("tool", scope("s"))
}
