package operator

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/sidecar/operator/api"
)

// An event is rendered as any other document of the API is, every member of it.
func TestRenderEventIsJSON(t *testing.T) {
	event := rapid.Custom(func(t *rapid.T) api.Event {
		text := rapid.OneOf(rapid.Just(""), rapid.String())
		id := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64())
		n := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64())
		e := api.Event{
			Seq: id.Draw(t, "seq"), AtMS: n.Draw(t, "at"), Kind: text.Draw(t, "kind"), Conn: id.Draw(t, "conn"),
			Opener: id.Draw(t, "opener"), Principal: text.Draw(t, "principal"), PID: n.Draw(t, "pid"), Exe: text.Draw(t, "exe"),
			Owner: text.Draw(t, "owner"), Ref: text.Draw(t, "ref"), Target: text.Draw(t, "target"), Rule: text.Draw(t, "rule"),
			Code: text.Draw(t, "code"), Message: text.Draw(t, "message"), Routes: n.Draw(t, "routes"),
			DeadlineMS: n.Draw(t, "deadline"), ElapsedUS: n.Draw(t, "elapsed"), Digest: text.Draw(t, "digest"),
			Who: text.Draw(t, "who"), Why: text.Draw(t, "why"),
		}
		if rapid.Bool().Draw(t, "scoped") {
			epoch := id.Draw(t, "epoch")
			e.ScopeEpoch = &epoch
		}
		if rapid.Bool().Draw(t, "called") {
			e.Call = &api.Call{Generation: id.Draw(t, "generation"), Created: n.Draw(t, "created")}
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		e := event.Draw(t, "event")
		want, err := json.Marshal(e)
		require.NoError(t, err)
		require.Equal(t, string(want), string(renderEvent(nil, &e)))
	})
}

// A name that is no UTF-8 does not keep an event from being told.
func TestRenderEventOfABrokenName(t *testing.T) {
	var back api.Event
	require.NoError(t, json.Unmarshal(renderEvent(nil, &api.Event{Kind: "refused", Exe: "/bin/\xff"}), &back))
	require.Equal(t, "/bin/\ufffd", back.Exe)
}
