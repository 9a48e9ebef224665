package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestS3_AnApplyCostsTheCallAndNotTheOwnersSet counts what a delta of one record
// allocates under 100 and under 10,000 held. Time is the benchmarks' matter.
func TestS3_AnApplyCostsTheCallAndNotTheOwnersSet(t *testing.T) {
	claim(t, "3.apply.named")
	cost := map[int]float64{}
	for _, held := range []int{100, MaxLiveScopes} {
		b := newBed(t)
		b.sync("core", repeat(held, func(i int) string { return fmt.Sprintf("s%d@1 parent=hist/p%d@1", i, i%7) })...)
		c := b.claim("core")
		lines := [2]string{"s7@1 parent=hist/p0@1 child=x", "s7@1 parent=hist/p0@1"}
		cost[held] = testing.AllocsPerRun(50, func() {
			generation := b.nextGen("core")
			_, refused := b.tryApply(c, generation, lines[generation%2])
			require.Nil(t, refused)
		})
	}
	require.InDelta(t, cost[100], cost[MaxLiveScopes], 2)
}

// TestS2_ASweepThatFindsNothingLooksAtNothing counts the deadlines that are read.
func TestS2_ASweepThatFindsNothingLooksAtNothing(t *testing.T) {
	claim(t, "2.expiry.end")
	b := newBed(t)
	b.sync("core", repeat(1000, func(i int) string { return due(fmt.Sprintf("s%d@1", i), int64(1000-i)) })...)
	heap := b.owners["core"].deadlines
	require.Len(t, heap, 1000)
	require.Equal(t, "s999", heap[0].ID.Ref, "the earliest is first")
	require.Empty(t, heap.passed(start))
	require.Len(t, heap.passed(start+10), 10)
	require.Len(t, b.owners["core"].deadlines, 1000, "looking changes nothing")
}
