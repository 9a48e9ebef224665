package operator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/sidecar/operator/api"
)

// The last 10,000 refusals can be read, the newest first, and all are counted.
func TestRingKeepsTheLast(t *testing.T) {
	var r ring
	any := func(*api.Event) bool { return true }
	empty, total := r.last(10, any)
	require.Empty(t, empty)
	require.NotNil(t, empty)
	require.Zero(t, total)
	const more = 7
	for i := range refusalsKept + more {
		r.add(&api.Event{Seq: uint64(i + 1)})
	}
	all, total := r.last(refusalsKept, any)
	require.EqualValues(t, refusalsKept+more, total)
	require.Len(t, all, refusalsKept)
	for i, e := range all {
		require.EqualValues(t, refusalsKept+more-i, e.Seq)
	}
	some, _ := r.last(2, func(e *api.Event) bool { return e.Seq%10 == 0 })
	require.Len(t, some, 2)
	require.EqualValues(t, 10000, some[0].Seq)
	require.EqualValues(t, 9990, some[1].Seq)
}
