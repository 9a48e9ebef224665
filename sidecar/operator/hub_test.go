package operator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/sidecar/operator/api"
)

// A reader that does not keep up is cut; nobody waits for it, and no other
// reader loses anything.
func TestHubCutsASlowReader(t *testing.T) {
	h := newHub()
	slow, quick := h.subscribe(nil), h.subscribe(nil)
	for i := range 3 * backlog {
		h.publish(&api.Event{Seq: uint64(i + 1)})
		require.EqualValues(t, i+1, (<-quick.events).Seq)
	}
	require.EqualValues(t, 1, h.readers.Load())
	require.EqualValues(t, 1, h.lagged.Load())
	n := 0
	for e := range slow.events {
		n++
		require.EqualValues(t, n, e.Seq)
	}
	require.Equal(t, backlog, n)
	h.unsubscribe(slow)
	h.unsubscribe(quick)
	require.Zero(t, h.readers.Load())
}

func TestHubKeepsToTheKinds(t *testing.T) {
	h := newHub()
	s := h.subscribe([]string{"drained"})
	h.publish(&api.Event{Kind: "admitted"})
	h.publish(&api.Event{Kind: "drained"})
	require.Len(t, s.events, 1)
	require.Equal(t, "drained", (<-s.events).Kind)
}
