package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// rotate is what a conditional rotation of core/s comes to.
func rotate(b *bed) string {
	b.t.Helper()
	return outcome(b.apply("core", fmt.Sprintf("s@%d carrier=direct carrier=unverified idle", b.next())))
}

func (b *bed) next() uint64 { return *b.describe("core/s").Epoch + 1 }

func TestS4_AConditionalReplacementWaitsForIdleness(t *testing.T) {
	claim(t, "4.idle", "4.usage.kept")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct carrier=unverified", "o@1")
	for i, principal := range []string{"direct", "unverified"} {
		id := b.reserve("core/s", principal, "tool", false)
		require.Equal(t, "scope_epoch_in_use", rotate(b), "in flight")
		a := b.apply("core", "s@1 carrier=direct carrier=unverified proof=ab idle", fmt.Sprintf("o@%d idle", 2+i))
		require.Equal(t, []string{"scope_epoch_in_use", "replaced"}, outcomesOf(a), "a change of proof counts, and others apply")
		require.NotRegexp(t, "[0-9]", a.Results[0].Message, "routes are neither counted nor named")
		require.Equal(t, Committed, b.Commit(id))
		require.Equal(t, "scope_epoch_in_use", rotate(b), "committed")
		require.True(t, b.Release(id))
	}
	require.Equal(t, "replaced", rotate(b))
}

func TestS4_UsageIsReleasedOnceOnEveryPath(t *testing.T) {
	claim(t, "4.usage.kept")
	paths := map[string]func(b *bed, id RouteID){
		"released in flight": func(b *bed, id RouteID) { b.Release(id); b.Release(id) },
		"released live":      func(b *bed, id RouteID) { b.Commit(id); b.Release(id); b.Release(id) },
		"the opener left":    func(b *bed, id RouteID) { require.Equal(b.t, ids(id), b.leave("opener of direct")); b.Release(id) },
		"the provider left":  func(b *bed, id RouteID) { require.Equal(b.t, ids(id), b.leave("module tool")); b.Release(id) },
		"left while live":    func(b *bed, id RouteID) { b.Commit(id); b.leave("module tool"); b.Release(id) },
		"drained": func(b *bed, id RouteID) {
			b.Commit(id)
			b.apply("core", "s@1 flow=f carrier=direct carrier=unverified")
		},
		"refused at commit": func(b *bed, id RouteID) {
			b.apply("core", "s@1 child=x carrier=direct carrier=unverified")
			b.Commit(id)
		},
		"committed twice":      func(b *bed, id RouteID) { b.Commit(id); b.Commit(id); b.Release(id) },
		"both sides left":      func(b *bed, id RouteID) { b.Commit(id); b.leave("module tool"); b.leave("opener of direct") },
		"released then leaves": func(b *bed, id RouteID) { b.Release(id); require.Empty(b.t, b.leave("opener of direct")) },
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.sync("core", "s@1 carrier=direct carrier=unverified")
			id := b.reserve("core/s", "direct", "tool", false)
			path(b, id)
			require.Equal(t, "replaced", rotate(b))
			require.Zero(t, len(b.routes))
			other := b.reserve("core/s", "direct", "tool", false)
			require.Equal(t, "scope_epoch_in_use", rotate(b), "never below nothing")
			require.True(t, b.Release(other))
		})
	}
}

func TestS4_ReservedOpenersDoNotKeepAnEpochInUse(t *testing.T) {
	claim(t, "4.usage.reserved", "4.presence.reserved")
	b := newBed(t)
	b.sync("core", "s@1 carrier=aft")
	id := b.reserve("core/s", "aft", "tool", true)
	require.Equal(t, Committed, b.Commit(id))
	b.reserve("core/s", "core", "tool", true)
	require.Zero(t, b.Scopes("core")[0].Holders)
	require.Equal(t, "replaced", rotate(b))
}

func TestS4_CreatedAndUnchangedRecordsAreNeverInUse(t *testing.T) {
	claim(t, "4.idle.never", "4.idle.flag")
	b := newBed(t)
	require.Equal(t, "created", outcome(b.sync("core", "s@1 carrier=direct idle")))
	r := b.open("core/s", "direct", "tool")
	for _, line := range []string{"s@1 carrier=direct idle", "s@1 carrier=direct", "s@1 carrier=direct idle"} {
		require.Equal(t, "unchanged", outcome(b.apply("core", line)), "the flag is no content")
	}
	require.Equal(t, "updated", outcome(b.apply("core", "s@1 carrier=direct child=x idle")), "another change is not conditional")
	require.Equal(t, "scope_epoch_regressed", outcome(b.apply("core", "s@0 idle")), "the record's own checks come first")
	require.Equal(t, "scope_epoch_in_use", outcome(b.apply("core", "s@2 idle parent=core/absent@1")), "its parent comes later")
	a := b.apply("core", "s@2 carrier=direct")
	require.Equal(t, "replaced", outcome(a), "without the flag the replacement is unconditional")
	require.Equal(t, map[RouteID]string{r: "scope_ended"}, drained(a.Drains))
}

func TestS4_PresenceSurvivesRoutesAndEndsWithTheConnection(t *testing.T) {
	claim(t, "4.presence.survives", "4.presence.shared")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct carrier=unverified")
	id := b.reserve("core/s", "direct", "tool", true)
	b.Commit(id)
	b.leave("module tool")
	require.Equal(t, "scope_epoch_in_use", rotate(b), "the target's restart does not end it")
	again := b.reserve("core/s", "direct", "tool", true)
	require.Equal(t, 1, b.Scopes("core")[0].Holders)
	b.Release(again) // a failed bind of a peer that is present
	require.Equal(t, "scope_epoch_in_use", rotate(b))
	b.leave("opener of direct")
	require.Equal(t, "replaced", rotate(b))
}

func TestS4_AFailedBindLeavesNoPresence(t *testing.T) {
	claim(t, "4.presence.failed")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct carrier=unverified")
	one, two := b.reserve("core/s", "direct", "tool", true), b.reserve("core/s", "direct", "tool", true)
	b.Release(one)
	require.Equal(t, 1, b.Scopes("core")[0].Holders, "the other bind still has its part")
	b.apply("core", "s@1 carrier=direct carrier=unverified child=x")
	require.Equal(t, StaleChanged, b.Commit(two))
	require.Zero(t, b.Scopes("core")[0].Holders)
	plain := b.reserve("core/s", "direct", "tool", false)
	b.Commit(plain)
	b.Release(plain)
	require.Equal(t, "replaced", rotate(b), "an open that does not ask leaves none")
}

func TestS4_PresenceIsCappedAtEightConnections(t *testing.T) {
	claim(t, "4.presence.cap")
	b := newBed(t)
	b.sync("core", "s@1 carrier=direct carrier=unverified")
	holders := func() int { return b.Scopes("core")[0].Holders }
	var routes []RouteID
	for i := range 9 {
		id := b.reserveFor(fmt.Sprintf("host %d", i), "core/s", "direct", "tool", true)
		if i >= 4 {
			require.Equal(t, Committed, b.Commit(id), "the ninth still binds")
		}
		routes = append(routes, id)
	}
	require.Equal(t, 8, holders(), "provisional holders count")
	for _, id := range routes {
		b.Release(id)
	}
	require.Equal(t, 4, holders(), "a failed bind frees its place")
	for i := range 8 {
		b.leave(fmt.Sprintf("host %d", i))
	}
	require.Equal(t, "replaced", rotate(b), "the ninth never held")
}

func TestS4_PresenceIsOfOneEpoch(t *testing.T) {
	claim(t, "4.presence.epoch")
	ends := map[string]func(b *bed){
		"replaced": func(b *bed) { b.apply("core", due("s@2 carrier=direct carrier=unverified", 20)) },
		"ended":    func(b *bed) { b.apply("core", "end s@1"); b.apply("core", due("s@2 carrier=direct", 20)) },
		"expired":  func(b *bed) { b.Sweep(start + 10); b.apply("core", due("s@2 carrier=direct", 20)) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.sync("core", due("s@1 carrier=direct carrier=unverified", 10))
			b.Commit(b.reserve("core/s", "direct", "tool", true))
			b.Commit(b.reserveFor("another host", "core/s", "direct", "tool", true))
			pending := b.reserve("core/s", "direct", "tool", true)
			end(b)
			require.Zero(t, b.Scopes("core")[0].Holders)
			require.Empty(t, b.Table.peers[b.peer("another host")].holds)
			require.Equal(t, StaleEnded, b.Commit(pending))
			require.Equal(t, "replaced", rotate(b))
			require.Empty(t, b.Table.peers[b.peer("opener of direct")].holds)
		})
	}
}
