package routertest

import (
	"bytes"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

func TestQ10_ControlOddities(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		type got struct {
			Type wire.Type
			Corr uint64
			Code string
		}
		script := func(p *Peer) {
			p.Send(wire.Header{Type: wire.Ping, Corr: 177}, nil)
			p.Send(wire.Header{Type: wire.Pong, Corr: 178}, nil)
			p.Send(wire.Header{Type: wire.Cancel, Corr: 179}, nil)
			p.Send(wire.Header{Type: wire.Push}, []byte(`{"op":"nope"}`))
			p.Send(wire.Header{Type: wire.Response, Corr: 180}, []byte(`{}`))
			p.Send(wire.Header{Type: wire.StreamData, Corr: 181}, []byte(`{}`))
			p.Send(wire.Header{Type: wire.StreamEnd, Corr: 182}, nil)
			p.Send(wire.Header{Type: wire.HelloAck, Corr: 183}, nil)
			p.Settle()
		}
		drain := func(p *Peer) (all []got) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, f := range p.inbox {
				require.Zero(t, f.Flags)
				all = append(all, got{f.Type, f.Corr, Reply{p, f}.Code()})
			}
			p.inbox = nil
			return all
		}
		script(c.Peer)
		require.Equal(t, []got{
			{wire.Pong, 177, ""},
			{wire.Error, 178, "unsupported_control_frame"},
			{wire.Error, 179, "unknown_subscription"},
			{wire.Error, 0, "unsupported_control_frame"},
			{wire.Error, 180, "unsupported_control_frame"},
			{wire.Error, 181, "unsupported_control_frame"},
			{wire.Error, 182, "unsupported_control_frame"},
			{wire.Error, 183, "unsupported_control_frame"},
		}, drain(c.Peer))
		script(m.Peer)
		require.Equal(t, []got{
			{wire.Pong, 177, ""},
			{wire.Error, 178, "unsupported_control_frame"},
			{wire.Error, 179, "unknown_subscription"},
			{wire.Error, 180, "invalid_control_body"},
			{wire.Error, 181, "unsupported_control_frame"},
			{wire.Error, 182, "unsupported_control_frame"},
			{wire.Error, 183, "unsupported_control_frame"},
		}, drain(m.Peer))

		for body, code := range map[string]string{
			`{"op":"no.such"}`: "unknown_control_op", `{"op":5}`: "invalid_control_body", `x`: "invalid_control_body",
			``: "invalid_control_body", `{"op":"supervisor.live_roots"}`: "not_registered", `{"op":"route.closing"}`: "invalid_control_body",
		} {
			c.Ask([]byte(body)).Refused(code)
		}
		for _, body := range []string{`{"op":"no.such"}`, `{"op":5}`, `x`, ``, `{"op":"route.open"}`, `{"op":"server.describe"}`, `{"op":"scope.sync"}`} {
			m.Ask([]byte(body)).Refused("unsupported_control_frame")
		}
		m.Ask(Doc{"op": "supervisor.live_roots"}).OK()
		// corr 0 is answered with 0.
		c.Send(wire.Header{Type: wire.Request}, []byte(`{"op":"server.describe"}`))
		f := c.Next()
		require.Equal(t, wire.Response, f.Type)
		require.Zero(t, f.Corr)
	})
}

func TestQ10_HeadersThatEndTheConnection(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		describe := []byte(`{"op":"server.describe"}`)
		whole := func(h wire.Header, body []byte) []byte { return wire.AppendFrame(nil, h, body) }
		versioned := func(v byte) []byte {
			b := whole(wire.Header{}, describe)
			b[4] = v
			return b
		}
		for name, bytes := range map[string][]byte{
			"type 12":            whole(wire.Header{Type: 12}, describe),
			"type 200":           whole(wire.Header{Type: 200}, nil),
			"priority 3":         whole(wire.Header{Flags: 0x06}, describe),
			"class 3":            whole(wire.Header{Flags: 0x30}, describe),
			"sheddable request":  whole(wire.Header{Flags: 0x20}, describe),
			"epoch on channel 0": whole(wire.Header{Epoch: 1}, describe),
			"version 1":          versioned(1),
			"version 3":          versioned(3),
			"version 1, short":   {0, 0, 0, 0, 1},
			"ping with body":     whole(wire.Header{Type: wire.Ping}, []byte("xx")),
			"oversize":           wire.Header{Len: wire.MaxBody + 1}.Append(nil),
		} {
			t.Run(name, func(t *testing.T) {
				c := r.client()
				c.SendRaw(bytes)
				c.Ended()
				require.Empty(t, c.inbox)
			})
		}
		for _, flags := range []wire.Flags{wire.FlagSubscription, wire.FlagDaemon, wire.FlagBinary, wire.FlagLast} {
			c := r.client()
			c.Send(wire.Header{Type: wire.Request, Flags: flags, Corr: 9}, describe)
			require.Equal(t, wire.Response, c.Next().Type)
		}
	})
}

func TestQ10_EpochZeroOnARouteAndFlagsAreRelayed(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		o := c.StartOpen("tool")
		b := m.NextBind()
		b.Ack()
		rt := o.Route()
		c.Start(wire.Request, rt.Channel, 0, []byte("x")).Wait().Refused("stale_route_epoch")
		all := wire.FlagBinary | wire.FlagInteractive | wire.FlagLast | wire.FlagExpedite | wire.FlagDaemon | wire.FlagSubscription
		rt.Send(wire.Request, all, 77, []byte("x"))
		f := m.Next()
		require.Equal(t, wire.Header{Len: 1, Type: wire.Request, Flags: all, Channel: b.Channel, Epoch: b.Epoch, Corr: 77}, f.Header)
		b.Send(wire.StreamData, wire.FlagSheddable, 77, []byte("yy"))
		f = c.Next()
		require.Equal(t, wire.Header{Len: 2, Type: wire.StreamData, Flags: wire.FlagSheddable, Channel: rt.Channel, Epoch: rt.Epoch, Corr: 77}, f.Header)
	})
}

func TestChannelsAreNumberedPerConnection(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		a, b := r.client(), r.client()
		a.Open("tool")
		second := a.Open("tool")
		first := b.Open("tool")
		require.EqualValues(t, 1, first.Channel)
		require.EqualValues(t, 2, second.Channel)
		m.NextBind()
		m.NextBind()
		require.EqualValues(t, 3, m.NextBind().Channel)
		// Numbers count up and are not used again soon.
		second.Goodbye()
		require.EqualValues(t, 3, a.Open("tool").Channel)
		require.Equal(t, "a", first.Call("a"))
	})
}

func TestQ8_DeadRoutes(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		o := c.StartOpen("tool")
		b := m.NextBind()
		b.Ack()
		dead := o.Route()
		call := dead.Start([]byte("in flight"))
		require.Equal(t, "in flight", string(m.Next().Body))
		dead.Goodbye()
		b.NextGoodbye()
		c.Quiet()
		require.False(t, call.Answered(), "the request is not answered")
		// Late frames of the module earn it one Goodbye.
		for range 3 {
			b.Send(wire.Response, 0, 1, []byte("late"))
			b.Send(wire.Push, 0, 0, []byte("late"))
		}
		b.NextGoodbye()
		b.Goodbye()
		m.Quiet()
		m.Start(wire.Request, b.Channel, b.Epoch, []byte("x")).Wait().Refused("unknown_channel")
		c.Quiet()

		m.Serve()
		live := c.Open("tool")
		for _, ty := range []wire.Type{wire.Push, wire.StreamData, wire.StreamEnd, wire.Cancel, wire.Goodbye} {
			for _, ce := range [][2]uint32{{uint32(dead.Channel), dead.Epoch}, {uint32(live.Channel), live.Epoch + 5}, {4000, 1}} {
				c.Send(wire.Header{Type: ty, Channel: uint16(ce[0]), Epoch: ce[1]}, nil)
			}
		}
		c.Quiet()
		c.Start(wire.Request, dead.Channel, dead.Epoch, nil).Wait().Refused("unknown_channel")
		c.Start(wire.Request, live.Channel, live.Epoch+5, nil).Wait().Refused("stale_route_epoch")
		c.Start(wire.Request, 4000, 1, nil).Wait().Refused("unknown_channel")
		require.Equal(t, "still", live.Call("still"))
	})
}

func TestQ6_WhoSeesWhat(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c, other := r.client(), r.client()
		first, second := c.Open("tool"), c.Open("tool")
		third := other.Open("tool")
		pending := func() *Opening { m.mu.Lock(); m.serving = false; m.mu.Unlock(); return c.StartOpen("tool") }()
		for range 4 {
			m.NextBind()
		}
		m.Close()
		for _, to := range []*Client{c, other} {
			abandoned := `1`
			requireBody(t, `{"op":"route.closed","module_id":"tool","reason":"crash","drained":false,
				"abandoned":`+abandoned+`,"excluded_subscriptions":0,"terminal":false}`, to.NextPush("route.closed").Frame)
		}
		c.NextGoodbyes(first, second)
		third.NextGoodbye()
		pending.Wait().Refused("target_unavailable")
		c.Quiet()
		c.OpenRefused("unknown_module", "tool")
	})
}

func TestQ6_ClientGoneWithABindInFlight(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		o := c.StartOpen("tool")
		committed := m.NextBind()
		committed.Ack()
		o.Route()
		c.StartOpen("tool")
		b := m.NextBind()
		c.Close()
		m.NextGoodbyes(committed, b)
		b.Ack()
		m.Quiet()
		require.Empty(t, r.client().Routes())
	})
}

func TestQ6_AnswersOutOfTurn(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		o := c.StartOpen("tool")
		b := m.NextBind()
		b.Reject("no")
		b.Ack()
		m.Quiet()
		o.Wait().Refused("no")
		require.Empty(t, c.Routes())

		o = c.StartOpen("tool")
		b = m.NextBind()
		b.Goodbye()
		b.Ack()
		b.Send(wire.Push, 0, 0, []byte("right behind"))
		o.Route()
		require.Equal(t, "right behind", string(c.Next().Body))
	})
}

func TestQ7_ManyRejectionsLeakNothing(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		for range 60 {
			o := c.StartOpen("tool")
			m.NextBind().Reject("scope_ended")
			o.Wait().Refused("scope_ended")
		}
		require.Empty(t, c.Routes())
		o := c.StartOpen("tool")
		b := m.NextBind()
		require.EqualValues(t, 61, b.Channel)
		b.Ack()
		o.Route()
	})
}

func TestRoutePollAndStatus(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c := r.client()
		rt := c.Open("tool")
		b := m.NextBind()
		require.True(t, rt.Live())
		poll := func(channel uint16, kind string) Reply {
			return c.Ask(Doc{"op": "route.poll", "route_channel": channel, "route_epoch": 1, "kind": kind}).OK()
		}
		require.Equal(t, "null", string(poll(rt.Channel, "status").Member("status")))
		m.Send(wire.Header{Type: wire.Push}, wire.MustMarshal(Doc{"op": "route.status", "route_channel": b.Channel, "route_epoch": b.Epoch, "status": "busy"}))
		m.Settle()
		requireBody(t, `{"op":"route.poll","route_channel":1,"route_epoch":1,"status":"busy","live":null}`, poll(rt.Channel, "status").Frame)
		requireBody(t, `{"op":"route.poll","route_channel":9,"route_epoch":1,"status":null,"live":false}`, poll(9, "liveness").Frame)
		rt.Goodbye()
		require.False(t, rt.Live())
	})
}

func TestAClientThatDoesNotReadIsCut(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c, good := r.client(), r.client()
		c.Open("tool")
		b := m.NextBind()
		rt := good.Open("tool")
		c.Pause()
		chunk := make([]byte, 1<<20)
		for range 64 { // sockets hold a good deal
			b.Send(wire.Push, 0, 0, chunk)
		}
		// Its routes end for the module; nobody else is disturbed.
		b.NextGoodbye()
		require.Equal(t, "x", rt.Call("x"))
		c.Resume()
		c.Ended()
	})
}

func TestAModuleThatDoesNotReadHoldsItsCallers(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m, other := r.module("tool").Serve(), r.module("other").Serve()
		c, good := r.client(), r.client()
		rt := c.Open("tool")
		m.NextBind()
		free := good.Open("other")
		other.NextBind()
		m.Pause()
		chunk := make([]byte, 1<<20)
		for range 12 {
			rt.Send(wire.Push, 0, 0, chunk)
		}
		require.Equal(t, "x", free.Call("x"))
		require.EqualValues(t, 1, good.Routes()["tool"], "nothing was cut")
		m.Resume()
		for range 12 {
			require.True(t, bytes.Equal(chunk, m.Next().Body))
		}
	})
}

func TestWindowOfOneRoute(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		o := c.StartOpen("tool")
		b := m.NextBind()
		b.Ack()
		rt := o.Route()
		var calls []*Call
		for range RequestWindow + 1 {
			calls = append(calls, rt.Start([]byte("x")))
		}
		for range RequestWindow {
			m.Next()
		}
		m.Quiet()
		b.Send(wire.Response, 0, calls[5].Corr, []byte("done"))
		calls[5].Wait().OK()
		require.Equal(t, calls[RequestWindow].Corr, m.Next().Corr)
	})
}

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
		over := r.Pipe()
		_, err := over.Read(make([]byte, 1))
		require.Error(t, err)
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
