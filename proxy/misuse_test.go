package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// clean requires that nothing of any open, bind or route is held anywhere.
func (r *rig) clean() {
	r.t.Helper()
	r.run()
	totals := r.world.Table.Totals()
	require.Equal(r.t, table.Totals{Synced: totals.Synced, Scopes: totals.Scopes}, totals, "the table's index")
	require.Empty(r.t, r.world.opens, "marks")
	require.Empty(r.t, r.world.turns.lines, "turns")
	for id, e := range r.ends {
		s := e.s
		for corr, q := range s.requests {
			require.NotEqual(r.t, openRequest, q.kind, "open %d of %d", corr, id)
		}
		require.Empty(r.t, s.routes, "routes of %d", id)
		require.Empty(r.t, s.legs, "legs of %d", id)
		require.Empty(r.t, s.early, "early drains of %d", id)
		require.Empty(r.t, s.parted, "partings of %d", id)
		require.Empty(r.t, s.binds, "binds of %d", id)
		require.Empty(r.t, s.serving, "served by %d", id)
		require.Zero(r.t, s.marked, "marked by %d", id)
		require.Nil(r.t, s.turn, "turn of %d", id)
	}
}

// misuse is an owner with the live scope s, a module, and a client whose scoped
// open has corr 7.
type misuse struct {
	*rig
	o, m, c *end
}

func newMisuse(t *testing.T) *misuse {
	r := newRig(t)
	x := &misuse{r, r.module("owner"), r.module("tool"), r.connect()}
	x.o.sync(1, record("s", 1, directCarrier))
	return x
}

func (x *misuse) open(c *end, corr uint64) {
	c.fromPeer(frame(wire.Request, corr, openBody(doc{"scope": selector("s", 1)})))
}

// bound takes the client's open to the module, where it has corr 41 and (3, 1).
func (x *misuse) bound() {
	x.t.Helper()
	x.open(x.c, 7)
	x.bindTo(x.c, x.m, 41, 3, 1)
	require.Equal(x.t, wire.Request, x.one(x.m.toPeer()).Type)
}

// acked is bound and the module's ack, which the router has.
func (x *misuse) acked() {
	x.t.Helper()
	x.bound()
	x.m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
	require.Equal(x.t, wire.Response, x.one(x.m.toRouter()).Type)
}

// answer is the router's to the client's open.
func (x *misuse) answer() []byte {
	return frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 5, "route_epoch": 1})
}

func TestS4_AClientThatVanishesAtAnyStepLeavesNothing(t *testing.T) {
	ack := frame(wire.Response, 41, doc{"op": wire.OpRouteBind})
	routersGoodbye := wire.AppendGoodbye(nil, 3, 1)
	vanish := map[string]func(*misuse){
		"its connection ends":  func(x *misuse) { x.c.s.End("the peer closed") },
		"a channel-0 Goodbye":  func(x *misuse) { x.c.fromPeer(wire.Header{Type: wire.Goodbye}.Append(nil)) },
		"the router ends it":   func(x *misuse) { x.c.s.End("the router closed") },
		"the router dismisses": func(x *misuse) { x.c.fromRouter(wire.Header{Type: wire.Goodbye}.Append(nil)) },
	}
	for how, gone := range vanish {
		t.Run(how, func(t *testing.T) {
			t.Run("after its open", func(t *testing.T) {
				x := newMisuse(t)
				x.open(x.c, 7)
				b := x.relayed(x.c)
				b["route_channel"], b["epoch"] = 3, 1
				gone(x)
				x.m.fromRouter(frame(wire.Request, 41, b))
				require.Equal(t, "scope_unsupported", x.code(x.one(x.m.toRouter())))
				require.Empty(t, x.m.toPeer())
				x.clean()
			})
			t.Run("after the bind, the ack before the router's Goodbye", func(t *testing.T) {
				x := newMisuse(t)
				x.bound()
				gone(x)
				x.m.fromPeer(ack)
				require.Equal(t, wire.Error, x.one(x.m.toRouter()).Type)
				x.m.fromRouter(routersGoodbye)
				require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 3, Epoch: 1}, x.one(x.m.toPeer()).Header, "the module acked: it must hear once that its route is gone")
				x.clean()
			})
			t.Run("after the bind, the router's Goodbye before the ack", func(t *testing.T) {
				x := newMisuse(t)
				x.bound()
				gone(x)
				x.m.fromRouter(routersGoodbye)
				require.Equal(t, wire.Goodbye, x.one(x.m.toPeer()).Type)
				x.clean()
				x.m.fromPeer(ack)
				require.Equal(t, wire.Response, x.one(x.m.toRouter()).Type, "the router ignores it, as without us")
				x.clean()
			})
			t.Run("after the ack", func(t *testing.T) {
				x := newMisuse(t)
				x.acked()
				gone(x)
				x.m.fromRouter(routersGoodbye)
				require.Equal(t, wire.Goodbye, x.one(x.m.toPeer()).Type)
				x.clean()
			})
			t.Run("after the answer", func(t *testing.T) {
				x := newMisuse(t)
				x.acked()
				x.c.fromRouter(x.answer())
				gone(x)
				x.m.fromRouter(routersGoodbye)
				require.Equal(t, wire.Goodbye, x.one(x.m.toPeer()).Type)
				x.clean()
			})
		})
	}
}

func TestS4_AModuleThatMisbehavesOverABindLeavesNothing(t *testing.T) {
	const late = "module_timeout"
	ack := frame(wire.Response, 41, doc{"op": wire.OpRouteBind})
	goodbye := wire.AppendGoodbye(nil, 3, 1)
	refused := func(code string) []byte { return frame(wire.Error, 7, wire.ErrorBody{Code: code, Message: "m"}) }
	for name, run := range map[string]func(x *misuse){
		"it never acks": func(x *misuse) {
			x.m.fromRouter(goodbye)
			x.c.fromRouter(refused(late))
			require.Equal(t, late, x.code(x.one(x.c.toPeer())))
		},
		"it acks when its time is over": func(x *misuse) {
			x.c.fromRouter(refused(late))
			x.m.fromRouter(goodbye)
			x.m.toPeer()
			x.m.fromPeer(ack)
			require.Empty(t, x.m.toPeer())
		},
		"it acks twice": func(x *misuse) {
			x.m.fromPeer(ack, ack)
			require.Len(t, x.m.toRouter(), 2)
			x.c.fromRouter(x.answer())
			require.Len(t, x.c.toPeer(), 1)
			x.c.fromPeer(wire.AppendGoodbye(nil, 5, 1))
			x.m.fromRouter(goodbye)
		},
		"it acks and refuses": func(x *misuse) {
			x.m.fromPeer(ack, frame(wire.Error, 41, wire.ErrorBody{Code: "no", Message: "m"}))
			require.Len(t, x.m.toRouter(), 2)
			x.c.fromRouter(x.answer(), wire.AppendGoodbye(nil, 5, 1))
			x.m.fromRouter(goodbye)
		},
		"it refuses and acks": func(x *misuse) {
			x.m.fromPeer(frame(wire.Error, 41, wire.ErrorBody{Code: "no", Message: "m"}), ack)
			x.c.fromRouter(refused("no"))
		},
		"it answers garbage": func(x *misuse) {
			x.m.fromPeer(frame(wire.Response, 41, "\xff{"))
			x.c.fromRouter(refused("target_unavailable"))
			x.m.fromRouter(goodbye)
		},
		"it refuses with garbage": func(x *misuse) {
			x.m.fromPeer(frame(wire.Error, 41, "nonsense"))
			x.c.fromRouter(refused("target_unavailable"))
		},
		"it says Goodbye to the bind, then acks": func(x *misuse) {
			x.m.fromPeer(goodbye)
			require.Equal(t, wire.Goodbye, x.one(x.m.toRouter()).Type)
			require.Equal(t, 1, x.world.Table.Totals().Pending, "it changes nothing")
			x.m.fromPeer(ack)
			x.c.fromRouter(x.answer())
			require.Len(t, x.c.toPeer(), 1)
			x.o.sync(2)
			require.Len(t, x.c.toPeer(), 2)
			x.m.fromRouter(goodbye)
		},
		"it acks and says Goodbye in one write": func(x *misuse) {
			x.m.fromPeer(ack, goodbye)
			x.c.fromRouter(x.answer(), wire.AppendGoodbye(nil, 5, 1))
			require.Len(t, x.c.toPeer(), 2)
		},
		"it ends its registration before it acks": func(x *misuse) {
			x.m.fromPeer(wire.Header{Type: wire.Goodbye}.Append(nil), ack)
			x.c.fromRouter(refused("target_unavailable"))
		},
		"it ends": func(x *misuse) {
			x.m.s.End("the peer closed")
			x.c.fromRouter(refused("target_unavailable"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newMisuse(t)
			x.bound()
			run(x)
			x.clean()
		})
	}
}

// A cancelled bind is forgotten: openers that come and go in front of a module
// that hangs cost nothing.
func TestS4_ThousandsOfAbandonedBindsOfAModuleThatHangsCostNothing(t *testing.T) {
	x := newMisuse(t)
	for i := range uint32(3000) {
		c := x.connect()
		x.open(c, 7)
		x.bindTo(c, x.m, uint64(100+i), 3, i+1)
		c.s.End("the peer closed")
		x.m.fromRouter(wire.AppendGoodbye(nil, 3, i+1))
		delete(x.ends, c.s.id)
		x.ends[c.s.id] = c
	}
	x.clean()
}

func TestS4_ThousandsOfRefusedOpensLeaveNothing(t *testing.T) {
	x := newMisuse(t)
	for i := range uint64(3000) {
		x.c.fromPeer(frame(wire.Request, i, openBody(doc{"scope": selector("nope", 1)})))
		x.bindTo(x.c, x.m, 100+i, uint16(i%7+1), uint32(i+1))
		refusal := x.one(x.m.toRouter())
		require.Equal(t, "scope_not_live", x.code(refusal))
		x.c.fromRouter(frame(wire.Error, i, string(refusal.Body)))
		require.Equal(t, "scope_not_live", x.code(x.one(x.c.toPeer())))
	}
	require.Empty(t, x.m.toPeer())
	x.clean()
}

func TestS4_ABindWithoutAMarkIsUnscopedWhateverItCarries(t *testing.T) {
	x := newMisuse(t)
	x.m.fromRouter(frame(wire.Request, 41, doc{"op": wire.OpRouteBind, "route_channel": 3, "epoch": 1, "principal": doc{"kind": "direct"},
		"scope": selector("s", 1), "call_mode": "codemode"}))
	b := body(t, x.one(x.m.toPeer()))
	require.NotContains(t, b, "scope")
	require.NotContains(t, b, "call_mode")
	x.clean()
}

// Whatever has an open's corr, before it or behind it, neither ends it for us nor
// keeps its route from the index: a record's change drains it.
func TestS4_AnOpensCorrUsedByAnyFrameNeverFreesItsRouteFromDrains(t *testing.T) {
	hello := frame(wire.Hello, 7, doc{"protocol_ver": 2, "manifest": doc{"module_id": "late"}})
	for name, other := range map[string][]byte{
		"Hello": hello, "malformed Hello": frame(wire.Hello, 7, "{"), "array Hello": frame(wire.Hello, 7, `[{}]`),
		"Request": frame(wire.Request, 7, doc{"op": "catalog.list"}), "malformed Request": frame(wire.Request, 7, "{"),
		"describe": frame(wire.Request, 7, doc{"op": wire.OpServerDescribe}), "scope op": frame(wire.Request, 7, doc{"op": wire.OpScopeSync}),
		"Cancel": frame(wire.Cancel, 7, nil), "Response": frame(wire.Response, 7, "{}"), "Error": frame(wire.Error, 7, "{}"),
		"HelloAck": frame(wire.HelloAck, 7, "{}"), "StreamData": frame(wire.StreamData, 7, "{}"), "StreamEnd": frame(wire.StreamEnd, 7, "{}"),
		"Push": frame(wire.Push, 7, "{}"), "Ping": frame(wire.Ping, 7, nil), "Pong": frame(wire.Pong, 7, nil),
	} {
		t.Run(name+" behind it", func(t *testing.T) {
			x := newMisuse(t)
			x.bound()
			x.c.fromPeer(other)
			require.Empty(t, x.c.toRouter(), "the router never sees it")
			x.c.toPeer()
			x.m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
			x.c.fromRouter(x.answer())
			require.Equal(t, wire.Response, x.one(x.c.toPeer()).Type)
			x.o.sync(2)
			require.Len(t, x.c.toPeer(), 2, "it drains")
			x.m.fromRouter(wire.AppendGoodbye(nil, 3, 1))
			x.clean()
		})
		t.Run(name+" before it", func(t *testing.T) {
			x := newMisuse(t)
			x.c.fromPeer(other)
			forwarded := len(x.c.toRouter()) > 0
			x.c.toPeer()
			x.open(x.c, 7)
			if len(x.c.toPeer()) > 0 { // refused: something else has the corr
				require.Empty(t, x.c.toRouter())
				x.clean()
				return
			}
			opened := x.c.s.requests[7].open != nil
			if !opened { // it waits behind a Hello
				x.c.fromRouter(frame(wire.Error, 7, wire.ErrorBody{Code: "invalid_hello", Message: "m"}))
				x.c.toPeer()
				forwarded = false
			}
			x.bindTo(x.c, x.m, 41, 3, 1)
			x.m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
			if forwarded { // the router's Error for it comes first
				x.c.fromRouter(frame(wire.Error, 7, wire.ErrorBody{Code: "x", Message: "m"}))
				x.c.toPeer()
			}
			x.c.fromRouter(x.answer())
			if forwarded {
				require.Empty(t, x.c.toPeer(), "a route that we no longer hold is not delivered")
				require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 5, Epoch: 1}, x.one(x.c.toRouter()).Header)
			} else {
				require.Equal(t, wire.Response, x.one(x.c.toPeer()).Type)
				x.o.sync(2)
				require.Len(t, x.c.toPeer(), 2, "it drains")
			}
			x.m.fromRouter(wire.AppendGoodbye(nil, 3, 1))
			x.clean()
		})
	}
}

// An answer that crossed a Goodbye on channel 0 is about a route which that ended.
// Its numbers may be another route's by now.
func TestS6_AnAnswerThatCrossedAGoodbyeOnChannelZeroClosesNoLaterRoute(t *testing.T) {
	x := newMisuse(t)
	x.acked()
	x.c.fromPeer(wire.Header{Type: wire.Goodbye}.Append(nil))
	x.c.toRouter()
	x.open(x.c, 8)
	x.bindTo(x.c, x.m, 42, 4, 1)
	x.m.fromPeer(frame(wire.Response, 42, doc{"op": wire.OpRouteBind}))
	x.c.fromRouter(frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 1, "route_epoch": 1}))
	require.Empty(t, x.c.toPeer())
	require.Empty(t, x.c.toRouter(), "(1, 1) is the other open's")
	x.c.fromRouter(frame(wire.Response, 8, doc{"op": wire.OpRouteOpen, "route_channel": 1, "route_epoch": 1}))
	require.Equal(t, uint64(8), x.one(x.c.toPeer()).Corr)
	x.c.fromPeer(data(wire.Request, 1, 1, "x"))
	require.Len(t, x.c.toRouter(), 1)
	x.o.sync(2)
	require.Len(t, x.c.toPeer(), 2, "it drains")
	x.m.fromRouter(wire.AppendGoodbye(nil, 3, 1), wire.AppendGoodbye(nil, 4, 1))
	x.clean()
}

func TestS6_OpensThatAGoodbyeOnChannelZeroEndedAreForgotten(t *testing.T) {
	x := newMisuse(t)
	for i := range uint64(1000) {
		x.c.fromPeer(frame(wire.Request, 2*i, openBody(nil)), frame(wire.Request, 2*i+1, openBody(doc{"scope": selector("s", 1)})), wire.Header{Type: wire.Goodbye}.Append(nil))
	}
	require.LessOrEqual(t, len(x.c.s.requests)+len(x.c.s.crossed), maxParted)
	x.clean()
	// Unscoped, it is delivered as without us.
	x.c.fromPeer(frame(wire.Request, 5000, openBody(nil)), wire.Header{Type: wire.Goodbye}.Append(nil))
	x.c.fromRouter(frame(wire.Response, 5000, doc{"op": wire.OpRouteOpen, "route_channel": 1, "route_epoch": 1}))
	require.Equal(t, uint64(5000), x.one(x.c.toPeer()).Corr)
}

func TestS4_AnAnswerThatNoRouterGivesLeavesNothing(t *testing.T) {
	ack := frame(wire.Response, 41, doc{"op": wire.OpRouteBind})
	t.Run("without a pair, behind a drain", func(t *testing.T) {
		x := newMisuse(t)
		x.acked()
		x.o.sync(2)
		x.c.fromRouter(frame(wire.Response, 7, "{}"))
		require.Len(t, x.c.toPeer(), 1)
		x.m.fromRouter(wire.AppendGoodbye(nil, 3, 1))
		x.clean()
	})
	t.Run("before the module's ack", func(t *testing.T) {
		x := newMisuse(t)
		x.bound()
		x.c.fromRouter(x.answer())
		require.Equal(t, "scope_unsupported", x.code(x.one(x.c.toPeer())))
		require.Equal(t, wire.Goodbye, x.one(x.c.toRouter()).Type)
		x.m.fromPeer(ack)
		require.Equal(t, wire.Error, x.one(x.m.toRouter()).Type)
		require.Equal(t, wire.Goodbye, x.one(x.m.toPeer()).Type)
		x.clean()
	})
}
