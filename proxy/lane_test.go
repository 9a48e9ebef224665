package proxy

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/proxy/wire"
)

// conversation is what a client sends: every way a frame can be treated, side by
// side.
func conversation() []byte {
	return bytes.Join([][]byte{
		frame(wire.Request, 1, doc{"op": "catalog.list"}),
		data(wire.Request, 4, 1, "call"),
		data(wire.StreamData, 4, 1, string(bytes.Repeat([]byte("x"), 70_000))),
		frame(wire.Request, 2, openBody(nil)),
		frame(wire.Request, 3, doc{"op": wire.OpScopeDescribe}),
		frame(wire.Ping, 5, nil),
		data(wire.Push, 9, 2, ""),
		data(wire.Request, 7, 1, "of a drained pair"),
		frame(wire.Request, 6, `{"op": 5}`),
		wire.AppendGoodbye(nil, 4, 1),
		frame(wire.Request, 8, `["route.open"]`),
		data(wire.Cancel, 9, 2, ""),
	}, nil)
}

func TestLaneReadsTheSameFramesHoweverTheyAreCut(t *testing.T) {
	talk := func(t require.TestingT, r *rig, cut func(rest int) int) (toRouterBytes, toPeerBytes []byte) {
		c := r.connect()
		c.s.bury(leg{7, 1}, toRouter)
		for rest := conversation(); len(rest) > 0; {
			n := cut(len(rest))
			c.fromPeer(rest[:n])
			rest = rest[n:]
		}
		return c.written[toRouter].Bytes(), c.written[toPeer].Bytes()
	}
	wantUp, wantDown := talk(t, newRig(t), func(rest int) int { return rest })
	require.NotContains(t, string(wantUp), "drained")
	t.Run("one byte at a time", func(t *testing.T) {
		up, down := talk(t, newRig(t), func(int) int { return 1 })
		require.True(t, bytes.Equal(wantUp, up) && bytes.Equal(wantDown, down))
	})
	t.Run("anywhere", func(t *testing.T) {
		r := newRig(t)
		rapid.Check(t, func(rt *rapid.T) {
			up, down := talk(rt, r, func(rest int) int { return rapid.IntRange(1, rest).Draw(rt, "n") })
			require.True(rt, bytes.Equal(wantUp, up) && bytes.Equal(wantDown, down))
		})
	})
}

func TestLaneInjectsOnlyBetweenFrames(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	r.opened(c, m, "s", 1, 5)
	half := data(wire.Push, 6, 1, "half a frame of another route")
	c.fromRouter(half[:30])
	o.sync(2)
	r.run()
	c.collect()
	require.Equal(t, half[:30], c.written[toPeer].Bytes(), "nothing may stand inside the frame")
	require.True(t, c.s.Stuck(), "the driver must be able to see that a Goodbye waits")
	c.fromRouter(half[30:])
	frames := c.toPeer()
	require.Len(t, frames, 3)
	require.Equal(t, []wire.Type{wire.Push, wire.Push, wire.Goodbye}, []wire.Type{frames[0].Type, frames[1].Type, frames[2].Type})
	require.False(t, c.s.Stuck())
}

func TestLaneEndsTheSessionOverAHeaderNobodyCanGetPast(t *testing.T) {
	for name, b := range map[string][]byte{
		"another version": {0, 0, 0, 0, 1},
		"over 64 MiB":     {1, 0, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRig(t).connect()
			c.fromPeer(b)
			require.True(t, c.s.Ended())
		})
	}
}

func TestParkedControlKeepsItsOrderAndDataGoesOn(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	r.bindTo(c, m, 41, 3, 1)
	m.toPeer()

	r.facts.waiting = true
	m.fromPeer(
		frame(wire.Request, 50, doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []doc{}}),
		data(wire.Push, 2, 1, "another route"),
		frame(wire.Response, 41, doc{"op": wire.OpRouteBind}),
		data(wire.Push, 3, 1, "behind its ack"),
		frame(wire.Request, 51, doc{"op": "catalog.update", "provides": []string{}}),
		wire.AppendGoodbye(nil, 2, 1),
	)
	require.Equal(t, "another route", string(r.one(m.toRouter()).Body))
	r.facts.answer()
	var seen []string
	for _, f := range m.toRouter() {
		seen = append(seen, fmt.Sprintf("%s %d %d", f.Type, f.Channel, f.Corr))
	}
	require.Equal(t, []string{"Response 0 41", "Push 3 9", "Request 0 51", "Goodbye 2 0"}, seen)
	require.Equal(t, uint64(50), r.one(m.toPeer()).Corr)
}

func TestHelloMakesWhatIsBehindItWaitForItsAck(t *testing.T) {
	r := newRig(t)
	e := r.connect()
	e.fromPeer(
		frame(wire.Hello, 1, doc{"protocol_ver": 2, "manifest": doc{"module_id": "owner"}}),
		frame(wire.Request, 2, doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []doc{}}),
		frame(wire.Request, 3, openBody(doc{"scope": selector("s", 1)})),
	)
	require.Equal(t, wire.Hello, r.one(e.toRouter()).Type)
	require.Empty(t, e.toPeer())
	t.Run("refused, it is a client still", func(t *testing.T) {
		e.fromRouter(frame(wire.Error, 1, doc{"code": "invalid_manifest", "message": "m"}))
		frames := e.toPeer()
		require.Len(t, frames, 2)
		require.Equal(t, "not_registered", r.code(frames[1]))
		forwarded := body(t, r.one(e.toRouter()))
		require.NotContains(t, forwarded, "scope", "the open behind it is marked as a client's is")
		require.Contains(t, forwarded, "consumer_capabilities")
	})
}
