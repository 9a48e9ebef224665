package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// pass_open_call_close
func TestS8_UnscopedRoutesOpenCallAndCloseAsWithoutUs(t *testing.T) {
	s := play(t)
	s.module("tool", routertest.Declares(flows))
	c := s.client()
	r := c.opens("tool", routertest.Capabilities("roots"))
	require.JSONEq(t, `{"project_root":"/","harness":"test","session":"s1"}`, string(r.bind.Identity))
	require.JSONEq(t, `{"kind":"direct"}`, string(r.bind.Principal))
	r.stamped("unscoped").works()
	r.goodbye()
	r = c.opens("tool")
	r.bind.Goodbye()
	r.NextGoodbye()
	require.Empty(t, c.Routes())
}

// pass_refusals
func TestS8_TheRoutersRefusalsOfUnscopedOpensComeThrough(t *testing.T) {
	s := play(t)
	s.module("owner")
	c := s.client()
	forged := routertest.As(routertest.Launch{ModuleID: "owner", Nonce: "0"})
	for code, opts := range map[string][]routertest.OpenOption{
		"target_unavailable":    {routertest.Kind("management_surface")},
		"bad_consumer_identity": {forged},
		"invalid_project_root":  {routertest.Root("")},
		"invalid_control_body":  {routertest.Kind("zzz")},
	} {
		c.refused(code, "owner", opts...)
	}
	c.refused("unknown_module", "nowhere")
	c.refused("invalid_control_body", "owner", routertest.With("consumer_capabilities", "x"))
	c.refused("invalid_control_body", "owner", routertest.With("identity", doc{"harness": "h"}))
}

// pass_client_gone
func TestS8_AClientsEndReachesTheModuleForEachRoute(t *testing.T) {
	s := play(t)
	tool := s.module("tool")
	c := s.client()
	var binds []routertest.Routed
	for range 3 {
		binds = append(binds, c.opens("tool").bind)
	}
	c.Close()
	tool.NextGoodbyes(binds...)
	require.Empty(t, s.client().Routes())
}

// pass_bad_headers
func TestS8_HeadersThatTheRouterDropsAConnectionForEndIt(t *testing.T) {
	s := play(t)
	body := []byte(`{"op":"server.describe"}`)
	header := wire.Header{Len: uint32(len(body)), Corr: 9}.Append(nil)
	for at, value := range map[int]byte{4: 1, 5: 12, 6: 0x06, 9: 1} { // version, type, priority, an epoch on channel 0
		c := s.client()
		bad := append(append([]byte(nil), header...), body...)
		bad[at] = value
		c.SendRaw(bad)
		c.Ended()
	}
	c := s.client()
	tolerated := append(append([]byte(nil), header...), body...)
	tolerated[6] = 0x80
	c.SendRaw(tolerated)
	require.Equal(t, wire.Response, c.Next().Type)
}

// pass_dead_routes
func TestS8_FramesOnDeadRoutesAreTheRoutersToAnswer(t *testing.T) {
	s := play(t)
	s.module("tool")
	c := s.client()
	dead, live := c.opens("tool"), c.opens("tool")
	dead.goodbye()
	dead.Start([]byte("x")).Wait().Refused("unknown_channel")
	c.Start(wire.Request, live.Channel, live.Epoch+5, []byte("x")).Wait().Refused("stale_route_epoch")
	for _, ty := range []wire.Type{wire.Push, wire.StreamData, wire.Cancel, wire.Goodbye} {
		dead.Send(ty, 0, 900, nil)
	}
	c.Quiet()
	live.works()
}

// pass_module_rejects
func TestS8_WhatAModuleAnswersToAnUnscopedBindComesThrough(t *testing.T) {
	s := play(t)
	tool, c := s.holding("tool"), s.client()
	for answer, code := range map[string]string{`{"code":"x","message":"m","detail":[1]}`: "x", `{"code":"scope_ended","message":"mine"}`: "scope_ended", `{"code":"x"}`: "target_unavailable", `not json`: "target_unavailable"} {
		h := c.StartOpen("tool")
		tool.Send(wire.Header{Type: wire.Error, Corr: tool.NextBind().Corr}, []byte(answer))
		h.Wait().Refused(code)
	}
}
