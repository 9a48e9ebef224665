package routertest

import (
	"bytes"
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

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
