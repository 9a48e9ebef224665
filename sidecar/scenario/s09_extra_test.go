package scenario

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// extra_dribbled_frames
func TestS8_FramesWrittenAFewBytesAtATimeAreReadWhole(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	o.sync(1, open1("s", 1))
	s.module("tool")
	c := s.client()
	body, err := json.Marshal(doc{"op": "route.open", "target": doc{"kind": "tool_provider", "module_id": "tool"},
		"identity": doc{"project_root": "/", "harness": "h", "session": "s"}, "scope": routertest.Selector("owner", "s", 1)})
	require.NoError(t, err)
	frames := append(wire.AppendFrame(nil, wire.Header{Corr: 77}, body), wire.Header{Type: wire.Ping, Corr: 78}.Append(nil)...)
	for len(frames) > 0 {
		n := min(7, len(frames))
		c.SendRaw(frames[:n:n])
		frames = frames[n:]
	}
	answered := map[wire.Type]uint64{}
	for range 2 {
		f := c.Next()
		answered[f.Type] = f.Corr
	}
	require.Equal(t, map[wire.Type]uint64{wire.Response: 77, wire.Pong: 78}, answered)
}

// extra_pipelined_module_ops
func TestS3_OperationsSentWithoutWaitingAreAnsweredInOrder(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	var calls []*routertest.Call
	for _, body := range []doc{
		{"op": "scope.sync", "generation": 1, "scopes": []any{rec("a", 1)}},
		{"op": "scope.apply", "generation": 2, "upsert": []any{rec("b", 1)}, "end": []any{}},
		{"op": "scope.describe", "owner": routertest.Reserved("owner"), "ref": "b"},
		{"op": "scope.apply", "generation": 3, "upsert": []any{}, "end": []any{end("b", 1)}},
		{"op": "scope.describe", "owner": routertest.Reserved("owner"), "ref": "b"},
		{"op": "scope.apply", "generation": 3, "upsert": []any{}, "end": []any{}},
	} {
		calls = append(calls, o.Start(wire.Request, wire.ControlChannel, 0, body))
	}
	for i, want := range []string{"a@1 created", "b@1 created", "live owner/b@1 head authorized", "ended b@1 | b@1 ended", "ended @1", "scope_sync_stale"} {
		s.said(calls[i].Wait()).is(want)
	}
}

// extra_pipelined_client
func TestS4_ACallAndAnOpenInOneWriteBothArrive(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, open1("s", 1))
	s.module("tool")
	c := s.client()
	r := c.opens("tool", scope("owner", "s", 1))
	call, next := r.Start([]byte("one")), c.StartOpen("tool", scope("owner", "s", 1))
	call.Wait().OK()
	r.Goodbye()
	require.Equal(t, "two", next.Route().Call("two"))
	r.bind.NextGoodbye()
}

// extra_concurrent_opens_and_changes
func TestS4_OpensThatRaceWithChangesLeaveNoRouteUnderAnEndedEpoch(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	s.module("tool")
	o.sync(1, open1("s", 1))
	const openers, each = 4, 20
	done := make(chan map[string]int, openers)
	for n := range openers {
		c := s.client()
		go func() {
			random, codes := rand.New(rand.NewPCG(1, uint64(n))), map[string]int{}
			for range each {
				codes[c.StartOpen("tool", scope("owner", "s", 1+random.Uint64N(4))).Wait().Code()]++
			}
			done <- codes
		}()
	}
	for i := range uint64(24) {
		o.apply(i+2, open1("s", 1+i/6, agent(fmt.Sprint(i))))
	}
	codes := map[string]int{}
	for range openers {
		for code, n := range <-done {
			codes[code] += n
		}
	}
	for code := range codes {
		require.Contains(t, []string{"", "scope_changed", "scope_ended"}, code)
	}
	o.sync(100)
	op := s.client()
	require.Eventually(t, func() bool { return len(op.Routes()) == 0 }, routertest.Patience, time.Millisecond)
}

// extra_frames_of_two_routes_do_not_mix
func TestS4_CallsOnManyRoutesOfOneConnectionAnswerTheirOwn(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, open1("s", 1))
	s.module("tool")
	c := s.client()
	type call struct {
		*routertest.Call
		body string
	}
	var calls []call
	var routes []*route
	for i := range 6 {
		opts := []routertest.OpenOption{}
		if i%2 == 0 {
			opts = append(opts, scope("owner", "s", 1))
		}
		routes = append(routes, c.opens("tool", opts...))
	}
	for i := range 20 {
		for n, r := range routes {
			body := fmt.Sprintf("%d-%d", n, i)
			calls = append(calls, call{r.Start([]byte(body)), body})
		}
	}
	for _, c := range calls {
		require.Equal(t, c.body, string(c.Wait().OK().Frame.Body))
	}
}

// extra_secrets_are_not_logged
func TestS2_NeitherProofNonceNorKeyIsLogged(t *testing.T) {
	s := play(t)
	c := s.client()
	good, hash := secret(7)
	bad, _ := secret(9)
	o := s.module("owner")
	o.sync(1, open1("s", 1, proof(hash)))
	s.module("tool")
	c.opens("tool", scope("owner", "s", 1, good))
	c.refused("scope_bind_proof_mismatch", "tool", scope("owner", "s", 1, bad))
	c.refused("invalid_control_body", "tool", scope("owner", "s", 1, good, doc{"x": 1}))
	forged := strings.Repeat("f", 63) + "e"
	c.refused("bad_consumer_identity", "tool", routertest.As(routertest.Launch{ModuleID: "owner", Nonce: forged}))
	f, err := connfile.Read(s.front)
	require.NoError(t, err)
	var log strings.Builder
	for _, e := range s.logs.All() {
		fmt.Fprintln(&log, e.Message, e.ContextMap())
	}
	require.NotEmpty(t, log.String())
	for _, secret := range []string{good["bind_proof"].(string), bad["bind_proof"].(string), hash, o.launch.Nonce, forged, hex.EncodeToString(f.Key), fmt.Sprint(f.Key)} {
		require.NotContains(t, log.String(), secret)
	}
}

// extra_handshake_garbage
func TestS8_WhatIsNoHandshakeIsClosedAndTheNextIsServed(t *testing.T) {
	s := play(t)
	f, err := connfile.Read(s.front)
	require.NoError(t, err)
	for _, garbage := range [][]byte{
		wire.AppendFrame(nil, wire.Header{Corr: 1}, []byte("{}")), append([]byte{9, 16, 0, 0}, make([]byte, 64)...), []byte("\x05\x00\x00\x00hello"), []byte("\x02\x00\x00\x00{}"),
	} {
		nc, err := net.Dial("tcp", f.Endpoints[0].Address())
		require.NoError(t, err)
		_, err = nc.Write(garbage)
		require.NoError(t, err)
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(routertest.Patience)))
		got, err := io.ReadAll(nc)
		require.Empty(t, got)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "still open")
		nc.Close()
	}
	s.client().Ask(doc{"op": "server.describe"}).OK()
}

// extra_owner_syncs_while_client_is_slow
func TestS5a_AClientThatReadsNothingHoldsUpNeitherTheSyncNorAnothersDrain(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	o.sync(1, open1("s", 1))
	s.module("tool")
	slow, quick := s.client(), s.client()
	rs, rq := slow.opens("tool", scope("owner", "s", 1)), quick.opens("tool", scope("owner", "s", 1))
	slow.Pause()
	for range 20 {
		rs.bind.Send(wire.Push, 0, 0, bytes.Repeat([]byte("x"), 60_000))
	}
	o.sync(2).is("ended s@1")
	rq.Drained("scope_ended")
	slow.Resume()
	for f := slow.Next(); f.Type != wire.Goodbye; f = slow.Next() {
		require.Equal(t, wire.Push, f.Type)
	}
	slow.Quiet()
}
