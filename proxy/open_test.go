package proxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

func TestS4_ScopedOpenReachesTheProviderStamped(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool", "call-modes/v1"), r.connect()
	o.sync(1, record("s", 1, directCarrier))

	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	forwarded := body(t, r.one(c.toRouter()))
	require.NotContains(t, forwarded, "scope")
	mark := forwarded["consumer_capabilities"].([]any)[0].(string)
	require.True(t, strings.HasPrefix(mark, wire.MarkPrefix))

	m.fromRouter(frame(wire.Request, 41, doc{"op": wire.OpRouteBind, "route_channel": 3, "epoch": 1,
		"target": forwarded["target"], "identity": forwarded["identity"],
		"principal": doc{"kind": "direct"}, "consumer_capabilities": []string{mark}}))
	bind := body(t, r.one(m.toPeer()))
	require.NotContains(t, bind, "consumer_capabilities", "absent stays absent")
	require.Equal(t, "classic", bind["call_mode"])
	require.Equal(t, doc{"owner": doc{"kind": "reserved", "module_id": "owner"}, "ref": "s", "scope_epoch": 1.0,
		"kind": "head", "owner_authorized": true}, bind["scope"])

	m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
	require.Equal(t, wire.Response, r.one(m.toRouter()).Type)
	c.fromRouter(frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 5, "route_epoch": 2}))
	require.Equal(t, wire.Response, r.one(c.toPeer()).Type)

	o.sync(2)
	frames := c.toPeer()
	require.Len(t, frames, 2)
	require.Equal(t, doc{"op": "route.closed", "module_id": "tool", "channels": []any{5.0}, "reason": "scope_ended",
		"drained": false, "abandoned": 0.0, "excluded_subscriptions": 0.0, "terminal": false}, body(t, frames[0]))
	require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 5, Epoch: 2}, frames[1].Header)
	require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 5, Epoch: 2}, r.one(c.toRouter()).Header)

	// Late frames of the drained pair vanish, both ways; a new binding of the slot lives.
	c.fromPeer(data(wire.Request, 5, 2, "late"), data(wire.Request, 5, 3, "new"))
	require.Equal(t, uint32(3), r.one(c.toRouter()).Epoch)
	c.fromRouter(data(wire.Push, 5, 2, "late"))
	require.Empty(t, c.toPeer())
}

func TestS8_TargetNotBehindTheSidecarIsNeverAnUnscopedRoute(t *testing.T) {
	r := newRig(t)
	r.module("owner").sync(1, record("s", 1, directCarrier))
	c := r.connect()
	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	require.Len(t, c.toRouter(), 1)
	c.fromRouter(frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 5, "route_epoch": 1}))
	require.Equal(t, "scope_unsupported", r.code(r.one(c.toPeer())))
	require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 5, Epoch: 1}, r.one(c.toRouter()).Header)
}

func TestS4_CommitRefusesAStaleTagAndLeavesTheModulesOtherRoutes(t *testing.T) {
	for _, tc := range []struct {
		name, code string
		change     func(o *end)
	}{
		{"changed", "scope_changed", func(o *end) {
			o.sync(2, record("s", 1, directCarrier, doc{"principal": doc{"kind": "reserved", "module_id": "x"}}))
		}},
		{"ended", "scope_ended", func(o *end) { o.sync(2) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			o, m, c := r.module("owner"), r.module("tool"), r.connect()
			o.sync(1, record("s", 1, directCarrier))
			c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
			r.bindTo(c, m, 41, 3, 1)
			require.Len(t, m.toPeer(), 1)
			tc.change(o)
			m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
			require.Equal(t, tc.code, r.code(r.one(m.toRouter())))
			require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 3, Epoch: 1}, r.one(m.toPeer()).Header)
			require.False(t, m.s.Ended())
		})
	}
}

func TestS4_DrainBetweenAckAndAnswerFollowsTheAnswer(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	r.bindTo(c, m, 41, 3, 1)
	m.toPeer()
	m.fromPeer(frame(wire.Response, 41, doc{"op": wire.OpRouteBind}))
	o.sync(2)
	require.Empty(t, c.toPeer(), "the opener has no channel yet")
	c.fromRouter(frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 5, "route_epoch": 1}))
	frames := c.toPeer()
	require.Len(t, frames, 3)
	require.Equal(t, wire.Response, frames[0].Type)
	require.Equal(t, wire.Push, frames[1].Type)
	require.Equal(t, wire.Goodbye, frames[2].Type)
}

func TestMarkCannotBeSentReusedGuessedOrRedirected(t *testing.T) {
	r := newRig(t)
	o, m, other, c := r.module("owner"), r.module("tool"), r.module("other"), r.connect()
	o.sync(1, record("s", 1, directCarrier))

	c.fromPeer(frame(wire.Request, 1, openBody(doc{"consumer_capabilities": []string{wire.MarkPrefix + strings.Repeat("0", 32)}})))
	require.Equal(t, wire.CodeInvalidRequest, r.code(r.one(c.toPeer())))
	require.Empty(t, c.toRouter())

	m.fromRouter(frame(wire.Request, 40, doc{"op": wire.OpRouteBind, "route_channel": 1, "epoch": 1, "principal": doc{"kind": "direct"},
		"consumer_capabilities": []string{wire.MarkPrefix + strings.Repeat("0", 32)}}))
	require.Equal(t, "scope_unsupported", r.code(r.one(m.toRouter())))

	c.fromPeer(frame(wire.Request, 2, openBody(doc{"scope": selector("s", 1)})))
	b := r.relayed(c)
	b["route_channel"], b["epoch"] = 1, 1
	redirected := doc{}
	for k, v := range b {
		redirected[k] = v
	}
	redirected["target"] = doc{"kind": "tool_provider", "module_id": "other"}
	other.fromRouter(frame(wire.Request, 41, redirected))
	require.Equal(t, "scope_unsupported", r.code(r.one(other.toRouter())))
	m.fromRouter(frame(wire.Request, 42, b))
	require.Equal(t, "scope_unsupported", r.code(r.one(m.toRouter())), "a mark is good once")
	require.Empty(t, m.toPeer())
}

// A mark is good for the open it was made for and for no other: target, identity
// as decoded and principal are the same on the bind.
func TestMarkIsOfItsOwnOpenOnly(t *testing.T) {
	identity := func(more doc) doc {
		d := doc{"project_root": "/p", "harness": "h", "session": "s", "project_id": "p"}
		for k, v := range more {
			d[k] = v
		}
		return d
	}
	for _, tc := range []struct {
		what, member string
		value        any
	}{
		{"identity", "identity", identity(doc{"session": "empty", "project_id": nil})},
		{"", "identity", identity(doc{"project_root": "/resolved", "more": 1})},
		{"", "target", doc{"module_id": "tool", "kind": "tool_provider", "service_id": nil}},
		{"identity", "identity", identity(doc{"harness": "H"})},
		{"identity", "identity", identity(doc{"session": "S"})},
		{"identity", "identity", identity(doc{"project_id": "P"})},
		{"identity", "identity", identity(doc{"project_id": nil})},
		{"target", "target", doc{"kind": "service", "module_id": "tool"}},
		{"target", "target", doc{"kind": "tool_provider", "module_id": "tool", "service_id": "s"}},
		{"principal", "principal", doc{"kind": "unverified"}},
		{"principal", "principal", doc{"kind": "reserved", "module_id": "owner"}},
	} {
		r := newRig(t)
		r.module("owner").sync(1, record("s", 1, directCarrier))
		m, c := r.module("tool"), r.connect()
		opened := identity(nil)
		if d, ok := tc.value.(doc); ok && d["session"] == "empty" { // an empty project is not no project
			opened["session"], opened["project_id"] = "empty", ""
		}
		c.fromPeer(frame(wire.Request, 2, openBody(doc{"scope": selector("s", 1), "identity": opened})))
		b := r.relayed(c)
		b["route_channel"], b["epoch"], b[tc.member] = 1, 1, tc.value
		m.fromRouter(frame(wire.Request, 42, b))
		if tc.what == "" {
			require.Equal(t, wire.Request, r.one(m.toPeer()).Type, "%v", tc.value)
			continue
		}
		refused := r.one(m.toRouter())
		require.Equal(t, "scope_unsupported", r.code(refused), "%v", tc.value)
		require.Contains(t, string(refused.Body), tc.what+" is not the marked open's", "%v", tc.value)
		require.Empty(t, m.toPeer(), "%v", tc.value)
	}
}

func TestNoParserDifferentialByArrays(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.fromPeer(frame(wire.Hello, 1, `[{"module_id":"x"},2]`))
	require.Equal(t, wire.CodeInvalidHello, r.code(r.one(c.toPeer())))
	c.fromPeer(frame(wire.Request, 2, `["route.open",{},{}]`))
	require.Equal(t, wire.CodeInvalidControlBody, r.code(r.one(c.toPeer())))
	for _, body := range []string{
		`{"op":"route.open","target":["tool_provider","tool"],"identity":{}}`,
		`{"op":"route.open","target":{},"identity":["/p","h","s"]}`,
		`{"op":"route.open","target":{},"identity":{},"consumer_identity":["owner","n"]}`,
		`{"op":"route.open","op":"server.describe","target":{},"identity":{}}`,
		`{"op":"route.open","scope":null,"sc\u006fpe":{},"target":{},"identity":{}}`,
	} {
		c.fromPeer(frame(wire.Request, 3, body))
		require.Equal(t, wire.CodeInvalidControlBody, r.code(r.one(c.toPeer())), body)
	}
	require.Empty(t, c.toRouter())
}

func TestOneCorrNamesOneThing(t *testing.T) {
	r := newRig(t)
	r.module("owner").sync(1, record("s", 1, directCarrier))
	c := r.connect()
	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	require.Len(t, c.toRouter(), 1)
	for _, tc := range []struct {
		frame []byte
		code  string
	}{
		{frame(wire.Request, 7, doc{"op": "catalog.list"}), wire.CodeInvalidRequest},
		{frame(wire.Request, 7, openBody(nil)), wire.CodeInvalidRequest},
		{frame(wire.Cancel, 7, nil), wire.CodeUnknownSubscription},
		{frame(wire.Response, 7, doc{}), ""},
		{frame(wire.Error, 7, doc{}), ""},
		{frame(wire.StreamEnd, 7, doc{}), ""},
		{frame(wire.Ping, 7, nil), ""},
	} {
		c.fromPeer(tc.frame)
		require.Empty(t, c.toRouter())
		if tc.code == "" {
			require.Empty(t, c.toPeer())
			continue
		}
		require.Equal(t, tc.code, r.code(r.one(c.toPeer())))
	}
	c.fromPeer(frame(wire.Request, 8, doc{"op": "supervisor.spawn_subscribe"}))
	c.fromPeer(frame(wire.Request, 8, openBody(nil)))
	require.Equal(t, wire.CodeInvalidRequest, r.code(r.one(c.toPeer())))
}

func TestGoodbyeOnChannelZeroStartsOver(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier), record("u", 1, directCarrier))
	r.opened(c, m, "s", 1, 1)
	// The drain is decided while the Goodbye is on its way, and comes after it.
	o.fromPeer(frame(wire.Request, 900, doc{"op": wire.OpScopeSync, "generation": 2, "scopes": []doc{record("u", 1, directCarrier)}}))
	c.fromPeer(wire.Header{Type: wire.Goodbye}.Append(nil))
	require.Equal(t, wire.Header{Type: wire.Goodbye}, r.one(c.toRouter()).Header)
	require.Empty(t, c.toPeer())
	// (1, 1) is another route now.
	r.opened(c, m, "u", 1, 1)
	c.fromPeer(data(wire.Request, 1, 1, "x"))
	require.Len(t, c.toRouter(), 1)
}

func TestS6_WhatLeavesTheIndexIsClosedAtTheRouter(t *testing.T) {
	r := newRig(t)
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	r.opened(c, m, "s", 1, 5)
	m.fromRouter(wire.AppendGoodbye(nil, 5, 1))
	require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 5, Epoch: 1}, r.one(m.toPeer()).Header)
	require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: 5, Epoch: 1}, r.one(m.toRouter()).Header)
}
