package scenario

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// wire_hello_ack_advertises
func TestS11_TheAckAndTheDescriptionAdvertiseScopesEachOnce(t *testing.T) {
	s := play(t)
	m := routertest.DialModule(t, s.front)
	ack := m.Hello("tool")
	described := s.client().Ask(doc{"op": "server.describe"}).OK()
	for _, capability := range []string{"scopes/v1", "scope-bind-proof/v1", "scope-bind-proof/v2", "scope-replace-if-idle/v1"} {
		q := []byte(`"` + capability + `"`)
		require.Equal(t, 1, bytes.Count(ack.Member("subc_capabilities"), q), capability)
		require.Equal(t, 1, bytes.Count(described.Member("capabilities"), q), capability)
	}
	for _, op := range []string{"scope.sync", "scope.apply", "scope.describe", "catalog.update"} {
		require.Equal(t, 1, bytes.Count(ack.Member("subc_ops"), []byte(`"`+op+`"`)), op)
	}
}

// wire_unknown_op
func TestS8_WhatIsNotOursIsTheRoutersToAnswer(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	for _, body := range []string{`{"op":"no.such.op"}`, `{"op":5}`, `{"noop":1}`, `not json`, ``, `[]`} {
		code := c.Ask([]byte(body)).Code()
		require.Contains(t, []string{"unknown_control_op", "invalid_control_body"}, code, body)
		o.Ask([]byte(body)).Refused("unsupported_control_frame")
	}
}

// wire_eight_pending_opens
func TestS8_TheRoutersEightPendingOpensCountScopedOnes(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, open1("s", 1))
	tool, c, other := s.holding("tool"), s.client(), s.client()
	var opens []*routertest.Opening
	for range routertest.MaxOpens {
		opens = append(opens, c.StartOpen("tool", scope("owner", "s", 1)))
	}
	var binds []*routertest.Bind
	for range opens {
		binds = append(binds, tool.NextBind())
	}
	c.refused("target_unavailable", "tool", scope("owner", "s", 1))
	ninth := other.StartOpen("tool", scope("owner", "s", 1))
	tool.NextBind().Ack()
	ninth.Route()
	for _, b := range binds {
		b.Ack()
	}
	for _, h := range opens {
		h.Route()
	}
	again := c.StartOpen("tool", scope("owner", "s", 1))
	tool.NextBind().Ack()
	again.Route()
}

// wire_refused_opens_do_not_fill_the_limit
func TestS4_RefusedOpensLeaveRoomForAGoodOne(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, open1("s", 1))
	s.module("tool")
	c := s.client()
	for range 5 {
		var opens []*routertest.Opening
		for range 4 {
			opens = append(opens, c.StartOpen("tool", scope("owner", "nope", 1)))
		}
		for _, h := range opens {
			h.Wait().Refused("scope_not_live")
		}
	}
	c.opens("tool", scope("owner", "s", 1))
	require.Equal(t, map[string]int{"tool": 1}, c.Routes())
}

// wire_interleaved_opens_keep_their_scopes, wire_mixed_scoped_and_unscoped_opens
func TestS4_ConcurrentOpensEachGetTheirOwnStamp(t *testing.T) {
	s := play(t)
	tool, c := s.holding("tool"), s.client()
	var records []doc
	for i := range uint64(8) {
		records = append(records, open1(fmt.Sprint("s", i), i+1))
	}
	s.module("owner").sync(1, records...)
	var opens []*routertest.Opening
	for i := range uint64(8) {
		opts := []routertest.OpenOption{routertest.Capabilities(fmt.Sprint(i))}
		if i%3 > 0 {
			opts = append(opts, scope("owner", fmt.Sprint("s", i), i+1))
		}
		opens = append(opens, c.StartOpen("tool", opts...))
	}
	for range opens {
		b := tool.NextBind()
		var i uint64
		_, err := fmt.Sscan((*b.Capabilities)[0], &i)
		require.NoError(t, err)
		want := "unscoped"
		if i%3 > 0 {
			want = fmt.Sprintf("owner/s%d@%d head authorized", i, i+1)
		}
		require.Equal(t, want, stampOf(t, b))
		b.Ack()
	}
	for _, h := range opens {
		h.Route()
	}
}

// wire_data_is_opaque
func TestS4_BodiesOnAScopedRouteAreOpaque(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, open1("s", 1))
	s.module("tool")
	r := s.client().opens("tool", scope("owner", "s", 1))
	for _, body := range []string{"", `{"op":"scope.sync","generation":1,"scopes":[]}`, `{"op":"route.open"}`, string(bytes.Repeat([]byte{0, 255}, 300<<10))} {
		require.Equal(t, body, r.Call(body))
	}
}

// wire_push_and_stream_from_module
func TestS4_PushesAndStreamsOnAScopedRouteKeepTheirOrder(t *testing.T) {
	h := hold(play(t), []doc{open1("s", 1)})
	h.commits()
	want := []wire.Type{wire.Push, wire.StreamData, wire.StreamData, wire.StreamEnd, wire.Push}
	for i, ty := range want {
		h.bind.Send(ty, 0, 7, []byte{byte('a' + i)})
	}
	for i, ty := range want {
		f := h.client.Next()
		require.Equal(t, ty, f.Type)
		require.Equal(t, []byte{byte('a' + i)}, f.Body)
	}
}

// wire_hello_after_routes
func TestS3_AConnectionThatOpenedRoutesCannotRegister(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, open1("s", 1))
	s.module("tool")
	c := s.client()
	r := c.opens("tool", scope("owner", "s", 1))
	c.Start(wire.Hello, wire.ControlChannel, 0, doc{"protocol_ver": 2,
		"manifest": doc{"module_id": "late", "module_version": "1", "protocol_ver": 2, "provides": []any{}}}).Wait().Refused("invalid_hello")
	c.Ask(doc{"op": "scope.sync", "generation": 1, "scopes": []any{}}).Refused("not_registered")
	r.works()
}
