package e2e

import (
	"bytes"
	"slices"
	"testing"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// TestTransparency: a conversation without scopes yields the same bytes through
// the sidecar as without it, on one router process, but for live counters and
// the documented additions to HelloAck and server.describe.
func TestTransparency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]module{})
	w.startRouter()
	w.startSidecar()
	requireTransparent(t, w.routerFile(), w.frontFile(), w.path("project"))
}

// minFrames is how long the conversation must be.
const minFrames = 2000

func requireTransparent(t *testing.T, direct, front, root string) {
	t.Helper()
	var talks [2]told
	for i, file := range []string{direct, front} {
		t.Run([]string{"direct", "through the sidecar"}[i], func(t *testing.T) { talks[i] = converse(t, file, root) })
		require.False(t, t.Failed())
		require.GreaterOrEqual(t, talks[i].sent+len(talks[i].client)+len(talks[i].module), minFrames)
	}
	requireSame(t, "client", talks[0].client, talks[1].client)
	requireSame(t, "module", talks[0].module, talks[1].module)
}

// requireSame compares what came on one connection in the two runs.
func requireSame(t *testing.T, who string, direct, front []wire.Frame) {
	t.Helper()
	for i := range min(len(direct), len(front)) {
		a, b := direct[i], front[i]
		require.Equal(t, stripped(a), stripped(b), "frame %d of the %s's", i, who)
		if !adorned(a) {
			require.True(t, bytes.Equal(a.Body, b.Body), "frame %d of the %s's: %.300q and %.300q", i, who, a.Body, b.Body)
		}
	}
	require.Len(t, front, len(direct))
}

func frames(t *testing.T, stream []byte) []wire.Frame {
	t.Helper()
	var all []wire.Frame
	for r := bytes.NewReader(stream); r.Len() > 0; {
		f, err := wire.ReadFrame(r)
		require.NoError(t, err)
		all = append(all, f)
	}
	return all
}

// adorned reports whether f may differ: it holds counters of the router's or
// additions of ours.
func adorned(f wire.Frame) bool {
	return f.Type == wire.HelloAck || f.Type == wire.Response && f.Channel == 0 &&
		(bytes.Contains(f.Body, []byte(`"op":"server.describe"`)) || bytes.Contains(f.Body, []byte(`"op":"catalog.list"`)))
}

// additions are what the sidecar adds to HelloAck and server.describe.
var additions = []string{
	wire.OpScopeSync, wire.OpScopeApply, wire.OpScopeDescribe, wire.OpScopeSubscribe,
	wire.CapScopes, wire.CapBindProofV1, wire.CapBindProofV2, wire.CapReplaceIfIdle, wire.CapScopeSubscribe,
}

// stripped is a frame without what may differ.
func stripped(f wire.Frame) any {
	if !adorned(f) {
		return f.Header
	}
	f.Header.Len = 0
	var body object
	if json.Unmarshal(f.Body, &body) != nil {
		return f
	}
	for _, counter := range []string{"connected_clients", "counters", "generation"} {
		delete(body, counter)
	}
	for _, list := range []string{"subc_ops", "subc_capabilities", "capabilities"} {
		if values, ok := body[list].([]any); ok {
			body[list] = slices.DeleteFunc(values, func(v any) bool {
				s, _ := v.(string)
				return slices.Contains(additions, s)
			})
		}
	}
	return []any{f.Header, body}
}
