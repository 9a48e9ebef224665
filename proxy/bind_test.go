package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// bound is an owner, a module with a stamped bind that it has not answered, and
// the opener: the bind has corr 501 and the pair (3, 1).
func (r *rig) bound() (m, c *end) {
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	c.fromPeer(frame(wire.Request, 1, openBody(doc{"scope": selector("s", 1)})))
	r.bindTo(c, m, 501, 3, 1)
	require.Equal(r.t, wire.Request, r.one(m.toPeer()).Type)
	return m, c
}

// The router gives a bind up, or ends the registration, while the module's answer
// is half read.
func TestS4_AnAnswerToABindThatIsGivenUpMeanwhileIsPassedOn(t *testing.T) {
	for name, goodbye := range map[string][]byte{
		"the bind":         wire.AppendGoodbye(nil, 3, 1),
		"the registration": wire.AppendGoodbye(nil, 0, 0),
	} {
		for _, answer := range [][]byte{
			frame(wire.Response, 501, doc{"op": wire.OpRouteBind}),
			frame(wire.Error, 501, wire.ErrorBody{Code: "no", Message: "m"}),
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				m, _ := r.bound()
				m.fromPeer(answer[:wire.HeaderLen+3])
				m.fromRouter(goodbye)
				m.fromPeer(answer[wire.HeaderLen+3:])
				got := r.one(m.toRouter())
				require.Equal(t, answer, wire.AppendFrame(nil, got.Header, got.Body))
				require.Zero(t, r.world.Table.Totals().Pending)
			})
		}
	}
}

// The router may hear of the answer first: then it has no bind to say Goodbye for.
func TestS4_AModuleThatAcceptsAfterItsOpenerHasGoneIsToldGoodbye(t *testing.T) {
	r := newRig(t)
	m, c := r.bound()
	c.s.End("the peer closed")
	m.fromPeer(frame(wire.Response, 501, doc{"op": wire.OpRouteBind}))
	require.Equal(t, wire.Error, r.one(m.toRouter()).Type)
	got := r.one(m.toPeer())
	require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 3, Epoch: 1}, got.Header)
}

// What the router sent before it saw a module's Goodbye on channel 0 is of a
// registration that has ended. An answer to it would meet the next one's bind of
// that corr, and burying its pair would bury the next one's.
func TestABindOfAnEndedRegistrationTouchesNothingOfTheNext(t *testing.T) {
	r := newRig(t)
	m := r.module("tool")
	bind := frame(wire.Request, 1, doc{"op": wire.OpRouteBind, "route_channel": 1, "epoch": 1,
		"target": doc{"kind": "tool_provider", "module_id": "tool"}, "identity": doc{}, "principal": doc{"kind": "direct"}})
	m.fromPeer(wire.AppendGoodbye(nil, 0, 0), frame(wire.Hello, 2, doc{"manifest": doc{"module_id": "tool"}}))
	require.Len(t, m.toRouter(), 2)
	m.fromRouter(bind)
	require.Empty(t, m.toRouter(), "no answer")
	require.Empty(t, m.toPeer())
	m.fromRouter(frame(wire.HelloAck, 2, doc{}), bind)
	require.Len(t, m.toPeer(), 2)
	m.fromPeer(frame(wire.Response, 1, doc{"op": wire.OpRouteBind}))
	require.Len(t, m.toRouter(), 1)
	m.fromRouter(data(wire.Request, 1, 1, "of the next"))
	require.Equal(t, "of the next", string(r.one(m.toPeer()).Body))
}

// A module answers an unscoped bind and speaks on its route at once: the router
// must not hear the second first.
func TestARoutesFirstFrameDoesNotOvertakeTheAnswerThatWaits(t *testing.T) {
	r := newRig(t)
	m := r.module("tool")
	m.fromRouter(frame(wire.Request, 1, doc{"op": wire.OpRouteBind, "route_channel": 7, "epoch": 1}))
	require.Len(t, m.toPeer(), 1)
	r.facts.waiting = true
	m.fromPeer(frame(wire.Request, 2, doc{"op": wire.OpScopeDescribe, "owner": doc{"kind": "reserved", "module_id": "x"}, "ref": "s"}),
		frame(wire.Response, 1, doc{"op": wire.OpRouteBind}), data(wire.Push, 7, 1, "first"))
	require.Empty(t, m.toRouter())
	r.facts.answer()
	frames := m.toRouter()
	require.Len(t, frames, 2)
	require.Equal(t, []wire.Type{wire.Response, wire.Push}, []wire.Type{frames[0].Type, frames[1].Type})
}
