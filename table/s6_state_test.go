package table

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestS6_ACommitIsEitherDrainedOrStale(t *testing.T) {
	claim(t, "6.atomic")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct")
	before, after := b.reserve("core/s", "direct", "x", false), b.reserve("core/s", "direct", "x", false)
	require.Equal(t, Committed, b.Commit(before))
	a := b.apply("core", "s@1")
	require.Equal(t, map[RouteID]string{before: "scope_carrier_removed"}, drained(a.Drains), "a bind in flight is not drained")
	require.Equal(t, StaleChanged, b.Commit(after))
}

func TestS6_DrainsReachRoutesOfSupersededEndpoints(t *testing.T) {
	claim(t, "6.superseded")
	b := newBed(t)
	b.sync("core", "s@1")
	r := Reservation{Scope: parseKey("core/s"), Principal: ReservedPrincipal("core"), Module: "tool", Opener: b.peer("opener")}
	want := map[RouteID]string{}
	for _, process := range []string{"incumbent", "candidate"} {
		r.Provider = b.peer(process)
		id, _, ok := b.Reserve(r, func(State) bool { return true })
		require.True(t, ok)
		require.Equal(t, Committed, b.Commit(id))
		want[id] = "scope_ended"
	}
	require.Equal(t, want, drained(b.apply("core", "end s@1").Drains))
}

func TestS6_ANewTableTakesTheSameEpochsAgain(t *testing.T) {
	claim(t, "6.restart")
	b := newBed(t)
	b.sync("core", "s@5", "gone@1")
	b.sync("core", "s@5")
	again := newBed(t)
	require.False(t, again.describe("core/s").OwnerSynced)
	require.Equal(t, []string{"created", "created"}, outcomesOf(again.sync("core", "s@5", "gone@1")))
}

// TestS6_ConcurrentCallersNeverLeaveARouteUnderAnEndedEpoch races commits,
// releases, leaves and reads with changes. Every route is accounted for once.
func TestS6_ConcurrentCallersNeverLeaveARouteUnderAnEndedEpoch(t *testing.T) {
	claim(t, "6.atomic", "4.usage.kept")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct", "p@1", "k@1 parent=core/p@1")
	openers := []Peer{b.peer("a"), b.peer("b"), b.peer("c")}
	provider := b.peer("m")
	var wg sync.WaitGroup
	live := make([]map[RouteID]bool, len(openers))
	for i, opener := range openers {
		live[i] = map[RouteID]bool{}
		wg.Go(func() {
			for n := range 300 {
				r := Reservation{Scope: parseKey("core/s"), Opener: opener, Principal: parsePrincipal("direct"), Module: "m", Provider: provider, Hold: n%3 == 0}
				id, _, ok := b.Reserve(r, func(s State) bool { return s.Live != nil })
				if !ok {
					continue
				}
				switch v := b.Commit(id); {
				case v == Committed && n%2 == 0:
					live[i][id] = true
				case v == Committed:
					b.Release(id)
				}
				b.Describe(r.Scope)
				b.Snapshot()
			}
		})
	}
	drains := map[RouteID]bool{}
	for n := range 200 {
		lines := []string{"s@1 carrier=direct"}
		if n%2 == 0 {
			lines = []string{"s@1"}
		}
		for _, d := range b.apply("core", lines...).Drains {
			require.False(t, drains[d.Route], "drained twice")
			drains[d.Route] = true
		}
	}
	wg.Wait()
	for _, d := range b.apply("core", "end s@1").Drains {
		drains[d.Route] = true
	}
	for _, routes := range live {
		for id := range routes {
			require.True(t, drains[id], "route %d is live under an ended epoch", id)
		}
	}
	require.Empty(t, b.routes)
}
