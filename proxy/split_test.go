package proxy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// padding makes a body long.
var padding = strings.Repeat("p", longBody)

// A long body is taken apart on no session's thread, and its frame is then judged as
// a short one is: an open, a bind, and what is none of ours, each in its order.
func TestALongBodyIsReadOffTheDriversThread(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	var jobs []func()
	r.world.work = func(job func()) { jobs = append(jobs, job) }
	work := func() {
		require.Len(t, jobs, 1)
		jobs[0]()
		jobs = nil
	}

	ping := wire.AppendFrame(nil, wire.Header{Type: wire.Ping, Corr: 8}, nil)
	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1), "padding": padding})), ping)
	require.Empty(t, c.toRouter(), "nothing overtakes it")
	work()
	sent := c.toRouter()
	require.Len(t, sent, 2)
	require.Equal(t, wire.Ping, sent[1].Type)
	open := body(t, sent[0])
	require.Equal(t, padding, open["padding"])
	require.NotContains(t, open, "scope")

	delete(open, "padding")
	m.fromRouter(frame(wire.Request, 501, doc{
		"op": wire.OpRouteBind, "route_channel": 3, "epoch": 1, "target": open["target"], "identity": open["identity"],
		"principal": doc{"kind": "direct"}, "consumer_capabilities": open["consumer_capabilities"], "padding": padding,
	}))
	require.Empty(t, m.toPeer())
	work()
	bind := body(t, r.one(m.toPeer()))
	require.Equal(t, padding, bind["padding"])
	require.Equal(t, "s", bind["scope"].(map[string]any)["ref"])

	plain := frame(wire.Request, 9, doc{"op": "catalog.other", "padding": padding})
	c.fromPeer(plain)
	work()
	require.Equal(t, plain[wire.HeaderLen:], r.one(c.toRouter()).Body)
	c.fromPeer(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 10}, []byte(`["`+padding+`"]`)))
	work()
	require.Equal(t, wire.Error, r.one(c.toPeer()).Type)
}

// A long call that the decoder refuses is read once more, to say what is wrong, and
// not again.
func TestALongCallThatIsMalformedIsRefusedOnce(t *testing.T) {
	r := newRig(t)
	o := r.module("owner")
	n := 0
	r.world.work = func(job func()) { n++; job() }
	o.fromPeer(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 9}, []byte(`{"op":"scope.sync","generation":1,"scopes":"`+padding+`"}`)))
	f := r.one(o.toPeer())
	require.Equal(t, wire.CodeInvalidControlBody, r.code(f))
	require.LessOrEqual(t, n, 3)
	require.False(t, bytes.Contains(f.Body, []byte(padding)))
}
