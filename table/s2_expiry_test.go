package table

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// due is a record that expires ms after the bed's start.
func due(line string, ms int64) string { return fmt.Sprintf("%s expires=%d", line, start+ms) }

func TestS2_AScopeEndsWhenItsDeadlineIsAtOrBeforeNow(t *testing.T) {
	claim(t, "2.expiry.end", "2.expiry.warning", "2.expiry.effects")
	b := newBed(t)
	b.sync("core", due("s@1 child=hist", 100), due("later@1", 101), "never@1")
	b.sync("hist", "kid@1 parent=core/s@1")
	own, other, child := b.open("core/s", "core", "tool"), b.open("core/later", "core", "tool"), b.open("hist/kid", "hist", "tool")
	inFlight := b.reserve("core/s", "core", "tool", false)
	expired, drains := b.Sweep(start + 99)
	require.Empty(t, expired)
	require.Empty(t, drains)
	expired, drains = b.Sweep(start + 100)
	require.Equal(t, []Expiry{{ID: ScopeID{parseKey("core/s"), 1}, Deadline: start + 100, Routes: 1, Digest: expired[0].Digest}}, expired)
	require.NotZero(t, expired[0].Digest)
	require.Equal(t, map[RouteID]string{own: "scope_ended", child: "scope_parent_ended"}, drained(drains))
	require.Equal(t, StaleEnded, b.Commit(inFlight))
	require.Equal(t, StatusEnded, b.describe("core/s").Status)
	require.Equal(t, "ended", b.link("hist/kid"))
	require.True(t, b.Release(other))
	require.Equal(t, "scope_expired", outcome(b.apply("core", due("s@1 child=hist", 200))))
	require.True(t, b.HasDeadlines())
	b.Sweep(math.MaxInt64)
	require.Equal(t, "1", b.live("core/never"))
	require.False(t, b.HasDeadlines())
}

func TestS2_SleepPastManyDeadlinesEndsAllAtTheFirstSweep(t *testing.T) {
	claim(t, "2.expiry.end")
	b := newBed(t)
	b.sync("core", repeat(50, func(i int) string { return due(fmt.Sprintf("s%02d@1", i), int64(1+(i*37)%50)) })...)
	b.sync("hist", due("h@1", 25))
	expired, _ := b.Sweep(start + 25)
	require.Len(t, expired, 26)
	expired, _ = b.Sweep(start + 50)
	require.Len(t, expired, 25)
	expired, _ = b.Sweep(start + 50)
	require.Empty(t, expired)
}

func TestS2_ANewEpochsDeadlineMustBeAheadAndWithin24Hours(t *testing.T) {
	claim(t, "2.expiry.passed", "2.expiry.horizon")
	b := newBed(t)
	a := b.sync("core", due("past@1", -1), due("now@1", 0), due("next@1", 1), due("max@1", MaxExpiryAheadMS),
		due("over@1", MaxExpiryAheadMS+1), fmt.Sprintf("huge@1 expires=%d", uint64(math.MaxUint64)), "zero@1 expires=0")
	require.Equal(t, []string{
		"scope_expired", "scope_expired", "created", "created", "scope_expiry_too_far", "scope_expiry_too_far", "scope_expired",
	}, outcomesOf(a))
}

func TestS2_TheDeadlineOfALiveEpochIsImmutable(t *testing.T) {
	claim(t, "2.expiry.immutable", "2.expiry.unchanged", "2.expiry.higher")
	b := newBed(t)
	b.sync("core", due("s@1", 5000), "none@1")
	for _, line := range []string{due("s@1", 5001), due("s@1", 4999), "s@1", due("s@1", -1), due("s@1", MaxExpiryAheadMS*2), due("none@1", 10), due("none@1", -10)} {
		require.Equal(t, "scope_expiry_immutable", outcome(b.apply("core", line)), line)
	}
	require.Equal(t, uint64(start+5000), *b.describe("core/s").Scope.ExpiresAtMS)
	b.now = start - 2*MaxExpiryAheadMS // the deadline is now past the horizon
	require.Equal(t, "unchanged", outcome(b.apply("core", due("s@1", 5000))))
	b.now = start
	require.Equal(t, "replaced", outcome(b.apply("core", due("s@2", 10))))
	require.Equal(t, uint64(start+10), *b.describe("core/s").Scope.ExpiresAtMS)
}

func TestS2_TheSweepWorksWithoutAnAuthorityAndChangesNeitherItNorTheGeneration(t *testing.T) {
	claim(t, "2.expiry.periodic", "2.expiry.no-backlog")
	b := newBed(t)
	b.sync("core", due("s@1", 10), due("t@1", 20))
	before := b.Owners()[0]
	b.Sweep(start + 10)
	after := b.Owners()[0]
	require.Equal(t, before.Authority, after.Authority)
	require.Equal(t, before.Generation, after.Generation)
	b.now = start + 10
	require.Empty(t, b.apply("core").Ended, "an owner gets no backlog")
	b.leave("core")
	expired, _ := b.Sweep(start + 20)
	require.Len(t, expired, 1)
	require.Nil(t, b.Owners()[0].Authority)
}

func TestS2_AnAcceptedCallSweepsItsOwnOwnerOnly(t *testing.T) {
	claim(t, "2.expiry.own", "2.expiry.describe", "2.expiry.admission")
	b := newBed(t)
	b.sync("core", due("s@1", 10))
	b.sync("hist", due("h@1", 10))
	b.now = start + 10
	a := b.sync("hist")
	require.Equal(t, []string{"h@1"}, endedRefs(a))
	require.Equal(t, StatusLive, b.describe("core/s").Status, "describe does not look at the deadline")
	before := b.dump()
	_, _, ok := b.Reserve(Reservation{Scope: parseKey("core/s"), Opener: b.peer("x"), Principal: ReservedPrincipal("core"), Provider: b.peer("m")},
		func(s State) bool { return !s.Live.Record.Passed(b.now) })
	require.False(t, ok)
	require.Equal(t, before, b.dump(), "admission does not mutate")
	require.Equal(t, []string{"s@1"}, endedRefs(b.apply("core")))
}

func TestS2_ARefusedCallCommitsNoSweep(t *testing.T) {
	claim(t, "2.expiry.no-commit")
	b := newLimitedBed(t, Limits{LiveScopes: 2})
	b.sync("core", due("s@1", 10), "t@1")
	b.now = start + 10
	b.refusedApply(CodeInvalidControlBody, "core", "end x@1", "end x@2")
	b.refusedApply(CodeLiveLimitExceeded, "core", "u@1", "v@1")
	b.refusedSync(CodeLiveLimitExceeded, "core", "u@1", "v@1", "w@1")
	require.Equal(t, StatusLive, b.describe("core/s").Status)
	_, refused := b.trySync(b.claim("core"), 1)
	require.Equal(t, CodeSyncStale, refused.Code)
	require.Equal(t, StatusLive, b.describe("core/s").Status)
}

func TestS2_ACallThatSweepsAScope(t *testing.T) {
	claim(t, "2.expiry.once", "2.expiry.resend", "2.expiry.not-undone")
	for _, full := range []bool{true, false} {
		b := newBed(t)
		b.sync("core", due("again@1", 10), due("ended@1", 10), due("higher@1", 10), due("gone@1", 10), "keep@1")
		r := b.open("core/higher", "core", "tool")
		b.now = start + 10
		lines := []string{due("again@1", 10), "higher@2", "keep@1", "bad@1 delegates"}
		var a *Applied
		if full {
			a = b.sync("core", lines...)
		} else {
			a = b.apply("core", append(lines, "end ended@1")...)
			require.Equal(t, []EndResult{{Ref: "ended", Epoch: 1}}, a.EndResults)
		}
		require.Equal(t, []string{"scope_expired", "created", "unchanged", "scope_delegates_without_agent"}, outcomesOf(a))
		require.Equal(t, []string{"again@1", "ended@1", "gone@1", "higher@1"}, endedRefs(a))
		require.Len(t, a.Expired, 4)
		require.Equal(t, map[RouteID]string{r: "scope_ended"}, drained(a.Drains))
		require.Equal(t, StatusEnded, b.describe("core/again").Status)
		require.Equal(t, "2", b.live("core/higher"))
	}
}

func TestS2_EndedBeforeTheDeadlineIsOwnerEnded(t *testing.T) {
	claim(t, "2.expiry.cause", "2.expiry.no-deadline")
	b := newBed(t)
	b.sync("core", due("omitted@1", 10), due("ended@1", 10), due("replaced@1", 10), due("expired@1", 10))
	b.sync("core", due("ended@1", 10), due("replaced@2", 10), due("expired@1", 10))
	b.apply("core", "end ended@1")
	b.now = start + 10
	a := b.apply("core", "omitted@1", "ended@1", "replaced@1", "expired@1")
	require.Equal(t, []string{"scope_epoch_ended", "scope_epoch_ended", "scope_epoch_ended", "scope_expired"}, outcomesOf(a))
	require.Equal(t, "scope_expired", outcome(b.apply("core", "replaced@2")))
}

func TestS2_WithItsTombstoneLostAnEpochIsJudgedByItsDeadlineOnly(t *testing.T) {
	claim(t, "2.expiry.lost", "2.bound.tombstones")
	b := newLimitedBed(t, Limits{Tombstones: 2})
	b.sync("core", due("s@1", 10), "a@1", "b@1")
	b.now = start + 10
	b.apply("core")
	require.Equal(t, "scope_expired", outcome(b.apply("core", "s@1")))
	b.apply("core", "end a@1", "end b@1") // pushes s@1 out
	require.Equal(t, 2, b.Owners()[0].Tombstones)
	require.Equal(t, "scope_expired", outcome(b.apply("core", due("s@1", 10))), "a passed deadline is refused by a fresh store too")
	require.Equal(t, "created", outcome(b.apply("core", due("s@1", 20))))
	require.Equal(t, "scope_epoch_ended", outcome(b.apply("core", "b@1")))
	require.Equal(t, StatusEnded, b.describe("core/a").Status)
}

func TestS2_TheTombstoneBoundHoldsWithinOneSweep(t *testing.T) {
	claim(t, "2.bound.tombstones")
	b := newLimitedBed(t, Limits{Tombstones: 2})
	b.sync("core", due("a@1", 10), due("b@1", 10), due("c@1", 10), "x@1", "y@5")
	b.apply("core", "end x@1", "end y@5")
	b.now = start + 10
	// The sweep of this call forgets x@1, y@5 and then a@1, the first it ended.
	a := b.apply("core", "x@1", "y@4", "a@1", "b@1", "c@1")
	require.Equal(t, []string{"created", "created", "created", "scope_expired", "scope_expired"}, outcomesOf(a))
	require.Equal(t, []string{"a@1", "b@1", "c@1"}, endedRefs(a))
}

func TestS2_AClockThatGoesBackNeverRevives(t *testing.T) {
	claim(t, "2.expiry.backwards")
	b := newBed(t)
	b.sync("core", due("s@1", 10), due("t@1", 20))
	b.Sweep(start + 10)
	b.now = start - 50
	expired, _ := b.Sweep(b.now)
	require.Empty(t, expired)
	require.Equal(t, "scope_expired", outcome(b.apply("core", due("s@1", 10))))
	require.Equal(t, "1", b.live("core/t"))
	expired, _ = b.Sweep(start + 19)
	require.Empty(t, expired, "the end is delayed")
	expired, _ = b.Sweep(start + 20)
	require.Len(t, expired, 1)
	expired, _ = b.Sweep(-1)
	require.Empty(t, expired, "a clock before 1970 expires nothing")
}
