package table

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestS3_TheFirstConnectionToSyncIsTheAuthority(t *testing.T) {
	claim(t, "3.authority.first", "3.authority.other", "3.apply.not-authority")
	b := newBed(t)
	b.sync("core", "s@1")
	other := b.claim("core")
	other.Peer = b.peer("second connection of the launch")
	_, refused := b.trySync(other, 100, "x@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code)
	_, refused = b.tryApply(other, 100, "x@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code)
	require.Equal(t, "unchanged", outcome(b.sync("core", "s@1")))
}

func TestS3_TheCurrentLaunchTakesAuthorityFromAnOlderOnes(t *testing.T) {
	claim(t, "3.authority.launch", "3.authority.lazy", "3.generation.first")
	b := newBed(t)
	b.gens["core"] = 50
	b.sync("core", "s@1", "t@1")
	older := b.claim("core")
	newer := older
	newer.Peer, newer.Launch = b.peer("promoted"), 2
	before := b.dump()
	_, refused := b.tryApply(newer, 52, "x@1")
	require.Equal(t, CodeSyncRequired, refused.Code, "an apply never takes authority")
	require.Equal(t, before, b.dump(), "promotion by itself changes nothing")
	a, refused := b.trySync(newer, 1, "s@1")
	require.Nil(t, refused, "at any generation")
	require.Equal(t, []string{"t@1"}, endedRefs(a), "a full replace")
	older.Current = false
	_, refused = b.trySync(older, 60, "s@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code)
	_, refused = b.tryApply(newer, 1)
	require.Equal(t, CodeSyncStale, refused.Code, "its generation is the new baseline")
	_, refused = b.tryApply(newer, 2)
	require.Nil(t, refused)
	b.leave("core")
	_, refused = b.tryApply(newer, 3)
	require.Nil(t, refused, "the older connection's close frees nothing")
}

func TestS3_ACandidateNeverTakesAuthority(t *testing.T) {
	claim(t, "3.authority.candidate")
	b := newBed(t)
	candidate := Claim{Peer: b.peer("candidate"), Owner: "core", Launch: 2}
	_, refused := b.trySync(candidate, 1, "s@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code, "not even where nobody has it")
	require.False(t, b.Synced("core"))
	b.sync("core", "s@1")
	for range 3 {
		_, refused = b.trySync(candidate, 9, "s@1")
		require.Equal(t, CodeSyncNotAuthority, refused.Code)
		_, refused = b.tryApply(candidate, 9, "s@1")
		require.Equal(t, CodeSyncNotAuthority, refused.Code)
		b.apply("core") // the serving owner's calls are accepted throughout
	}
	b.leave("candidate") // rolled back
	b.apply("core")
}

func TestS3_AuthorityIsFreeOnceItsConnectionCloses(t *testing.T) {
	claim(t, "3.authority.close", "3.apply.required")
	b := newBed(t)
	b.gens["core"] = 9
	b.sync("core", "s@1")
	b.leave("core")
	require.Equal(t, "1", b.live("core/s"), "closing ends nothing")
	_, refused := b.tryApply(b.claim("core"), 11, "x@1")
	require.Equal(t, CodeSyncRequired, refused.Code, "never an apply")
	_, refused = b.trySync(b.claim("core"), 0, "s@1")
	require.Nil(t, refused)
	_, refused = b.tryApply(b.claim("core"), 1, "x@1")
	require.Nil(t, refused)
}

func TestS3_AnApplyBeforeAnySyncIsRequired(t *testing.T) {
	claim(t, "3.apply.required")
	b := newBed(t)
	b.refusedApply(CodeSyncRequired, "core", "s@1")
	b.refusedApply(CodeSyncRequired, "core")
	require.False(t, b.Synced("core"))
}

func TestS3_GenerationStaleChangesNothing(t *testing.T) {
	claim(t, "3.generation.stale", "3.apply.stale")
	b := newBed(t)
	b.gens["core"] = 6
	b.sync("core", "s@1", due("e@1", 10))
	b.now = start + 10
	before := b.dump()
	for _, generation := range []uint64{7, 6, 0} {
		_, refused := b.trySync(b.claim("core"), generation)
		require.Equal(t, CodeSyncStale, refused.Code)
		_, refused = b.tryApply(b.claim("core"), generation, "end s@1")
		require.Equal(t, CodeSyncStale, refused.Code)
		require.Equal(t, before, b.dump())
	}
	_, refused := b.tryApply(b.claim("core"), math.MaxUint64)
	require.Nil(t, refused)
	_, refused = b.trySync(b.claim("core"), math.MaxUint64)
	require.Equal(t, CodeSyncStale, refused.Code)
}

func TestS3_AScopeAbsentFromAFullSyncEnds(t *testing.T) {
	claim(t, "3.sync.omitted", "3.sync.tombstoned", "3.apply.later-sync")
	b := newBed(t)
	b.sync("core", "a@1", "b@1", "c@2")
	r, kept := b.open("core/b", "core", "tool"), b.open("core/a", "core", "tool")
	b.apply("core", "d@1")
	a := b.sync("core", "a@1")
	require.Equal(t, []string{"b@1", "c@2", "d@1"}, endedRefs(a))
	require.Equal(t, map[RouteID]string{r: "scope_ended"}, drained(a.Drains))
	require.False(t, b.Release(r), "the table has let the drained route go")
	require.True(t, b.Release(kept))
	a = b.sync("core", "a@1", "b@1", "c@1", "c2@1", "d@2")
	require.Equal(t, []string{"unchanged", "scope_epoch_ended", "scope_epoch_regressed", "created", "created"}, outcomesOf(a))
	require.Empty(t, b.sync("core", "a@1", "c2@1", "d@2").Ended)
}

func TestS3_AHigherEpochEndsTheOldScopeAndCreatesTheNewOne(t *testing.T) {
	claim(t, "3.sync.replace")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct", "t@1")
	live := b.open("core/s", "direct", "tool")
	inFlight := b.reserve("core/s", "direct", "tool", false)
	a := b.apply("core", "s@9 carrier=direct")
	require.Equal(t, "replaced", outcome(a))
	require.Equal(t, []string{"s@1"}, endedRefs(a))
	require.Equal(t, map[RouteID]string{live: "scope_ended"}, drained(a.Drains))
	require.Equal(t, StaleEnded, b.Commit(inFlight))
	require.Equal(t, "scope_epoch_ended", outcome(b.apply("core", "s@1")))
	require.Equal(t, "9", b.live("core/s"))
}

func TestS3_ARefusedRecordKeepsItsStateAndTheRestApplies(t *testing.T) {
	claim(t, "3.sync.refused-record", "3.reply")
	b := newBed(t)
	b.sync("core", "a@5", "b@1", "c@1 head")
	r := b.open("core/a", "core", "tool")
	version := b.version("core/a")
	a := b.sync("core", "c@1 worker", "a@4", "new@1", "b@1 child=hist")
	require.Equal(t, []string{"scope_kind_changed", "scope_epoch_regressed", "created", "updated"}, outcomesOf(a))
	require.Empty(t, a.Ended, "a refused record is not an omitted one")
	require.Empty(t, a.Drains)
	require.Equal(t, uint64(4), a.Results[1].Epoch, "the epoch that the record named")
	require.Equal(t, version, a.Results[1].Version, "the version held")
	require.Equal(t, version, b.version("core/a"))
	require.True(t, b.Release(r))
	for _, res := range a.Results[:2] {
		require.NotEmpty(t, res.Message)
	}
}

func TestS3_WholeCallChecksRunInTheContractsOrder(t *testing.T) {
	claim(t, "3.apply.order", "3.apply.body", "3.apply.lists")
	b := newBed(t)
	malformed := `{"ref":"x","scope_epoch":1,"kind":"head","x":1}`
	candidate := Claim{Peer: b.peer("candidate"), Owner: "core", Launch: 2}
	_, refused := b.tryApply(candidate, 0, malformed)
	require.Equal(t, CodeInvalidControlBody, refused.Code, "decoding comes before authority")
	_, refused = b.tryApply(candidate, 0, "@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code, "authority before required")
	b.refusedApply(CodeSyncRequired, "core", "@1") // required before stale and body
	b.gens["core"] = 5
	b.sync("core")
	_, refused = b.tryApply(b.claim("core"), 6, "@1")
	require.Equal(t, CodeSyncStale, refused.Code, "stale before body")
	b.refusedApply(CodeInvalidControlBody, "core", "@1")
	b.refusedSync(CodeInvalidControlBody, "core", "@1")
	for _, lines := range [][]string{{"dup@1", "dup@2"}, {"end dup@1", "end dup@2"}, {"dup@1", "end dup@1"}} {
		require.Contains(t, b.refusedApply(CodeInvalidControlBody, "core", lines...), `"dup"`)
	}
	require.Contains(t, b.refusedApply(CodeInvalidControlBody, "core", "end @1"), "empty")
	over := repeat(MaxEntries+1, func(i int) string { return fmt.Sprintf("s%d@1", i) })
	b.refusedSync(CodeLiveLimitExceeded, "core", over...)
	b.refusedApply(CodeLiveLimitExceeded, "core", over...)
	ends := repeat(MaxEntries+1, func(i int) string { return fmt.Sprintf("end s%d@1", i) })
	b.refusedApply(CodeLiveLimitExceeded, "core", ends...)
}

func TestS3_BodyChecksRunListThenRecordsThenEnds(t *testing.T) {
	claim(t, "3.apply.body-order")
	b := newBed(t)
	b.sync("core")
	big := fmt.Sprintf("big@1 agent=%05000d", 0)
	over := repeat(MaxEntries, func(i int) string { return fmt.Sprintf("s%d@1", i) })
	overEnds := repeat(MaxEntries+1, func(i int) string { return fmt.Sprintf("end e%d@1", i) })
	bad := `{"ref":"s","scope_epoch":1,"kind":"head","attributes":{"flow_id":"","run_id":""}}`
	for _, c := range []struct {
		code  Code
		names string
		lines []string
	}{
		{CodeLiveLimitExceeded, "records", append([]string{"@1"}, over...)},
		{CodeInvalidControlBody, "empty", append([]string{"@1"}, overEnds...)},
		{CodeInvalidControlBody, "empty", []string{"@1", big}},
		{CodeAttributesTooLarge, "big", []string{big, "@1"}},
		{CodeInvalidControlBody, `"a"`, []string{"a@1", "a@1 flow=" + fmt.Sprintf("%0300d", 0)}},
		{CodeInvalidControlBody, "flow_id", []string{bad}},
		{CodeAttributesTooLarge, "big", append([]string{big}, overEnds...)},
		{CodeLiveLimitExceeded, "ends", append(overEnds, "end e0@1", "a@1")},
		{CodeAttributesTooLarge, "big", []string{"end x@1", "end x@1", big}},
	} {
		require.Contains(t, b.refusedApply(c.code, "core", c.lines...), c.names)
	}
}

func TestS3_AnApplyChangesOnlyTheNamedRefs(t *testing.T) {
	claim(t, "3.apply.named", "3.apply.end", "3.apply.advances")
	b := newBed(t)
	b.sync("core", "a@3", "b@1", "c@1", "gone@1")
	b.apply("core", "end gone@1")
	a := b.apply("core", "new@1", "end a@2", "end typo@1", "end gone@1", "end b@1", "end c@2")
	require.Equal(t, []EndResult{{"a", 2, false}, {"typo", 1, false}, {"gone", 1, false}, {"b", 1, true}, {"c", 2, false}}, a.EndResults)
	require.Equal(t, []string{"b@1"}, endedRefs(a))
	require.Equal(t, "3", b.live("core/a"))
	require.Equal(t, "1", b.live("core/c"))
	require.Equal(t, "scope_epoch_ended", outcome(b.apply("core", "b@1")))
	for range 3 {
		generation := b.Owners()[0].Generation
		b.apply("core", "b@1", "end never@1")
		require.Equal(t, generation+1, b.Owners()[0].Generation, "an ineffective call advances")
	}
	generation := b.Owners()[0].Generation
	b.apply("core")
	require.Equal(t, generation+1, b.Owners()[0].Generation, "an empty call advances")
	b.sync("hist", "r@1 agent=no")
	require.True(t, b.Synced("hist"), "a sync whose every record is refused is accepted")
	_, refused := b.trySync(b.claim("hist"), 1)
	require.Equal(t, CodeSyncStale, refused.Code)
}

func TestS3_TheResultingSetIsBounded(t *testing.T) {
	claim(t, "2.bound.live", "3.apply.limit", "3.apply.slot")
	b := newLimitedBed(t, Limits{LiveScopes: 3})
	b.sync("core", "a@1", "b@1", due("c@1", 10))
	b.sync("hist", "a@1", "b@1", "c@1") // the bound is an owner's
	r := b.open("core/a", "core", "tool")
	b.refusedApply(CodeLiveLimitExceeded, "core", "d@1")
	b.refusedApply(CodeLiveLimitExceeded, "core", "d@1", "end a@2")
	b.refusedSync(CodeLiveLimitExceeded, "core", "a@1", "b@1", due("c@1", 10), "d@1")
	require.True(t, b.Release(r))
	a := b.apply("core", "d@1", "end a@1")
	require.Equal(t, "created", outcome(a), "a matching end frees a slot")
	require.Equal(t, []string{"replaced", "scope_epoch_ended", "unchanged"}, outcomesOf(b.apply("core", "d@2", "a@1", "b@1")), "neither a replacement nor a refusal takes one")
	b.refusedApply(CodeLiveLimitExceeded, "core", "e@1")
	b.now = start + 10
	require.Equal(t, "created", outcome(b.apply("core", "e@1")), "an expired scope frees a slot")
}

func TestS3_TheContractsBoundIs10000(t *testing.T) {
	claim(t, "2.bound.live")
	b := newBed(t)
	full := repeat(MaxEntries, func(i int) string { return fmt.Sprintf("s%d@1", i) })
	b.sync("core", full...)
	require.Equal(t, 10_000, b.Owners()[0].Live)
	b.refusedApply(CodeLiveLimitExceeded, "core", "one-more@1")
	a := b.sync("core")
	require.Len(t, a.Ended, 10_000)
	require.Equal(t, 1_000, b.Owners()[0].Tombstones)
}
