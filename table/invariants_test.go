package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newFullBed is a bed with something of everything that a table holds.
func newFullBed(t *testing.T) (b *bed, live, inFlight *route) {
	b = newBed(t)
	b.sync("core", "p@1 child=hist carrier=aft", "k@1 parent=core/p@1", "late@3 expires=1000000005000", "later@1 expires=1000000009000", "old@1", "older@1")
	b.apply("core", "end older@1", "old@2")
	b.sync("hist", "waits@1 parent=never/p@1", "direct@1 carrier=direct", "second@1")
	live = b.routes[b.open("core/p", "aft", "tool")]
	id := b.reserve("hist/direct", "direct", "tool", true)
	require.Equal(t, Committed, b.Commit(id))
	inFlight = b.routes[b.reserve("hist/direct", "direct", "tool", true)]
	require.Empty(t, b.Invariants())
	return b, live, inFlight
}

// TestInvariantsSeeWhatIsWrong breaks one thing of a sound table after the other.
func TestInvariantsSeeWhatIsWrong(t *testing.T) {
	for law, harm := range map[string]func(b *bed, live, inFlight *route){
		"is kept as":                  func(b *bed, _, _ *route) { b.owners["core"].authorized = false },
		"never synced and is kept":    func(b *bed, _, _ *route) { b.owners["hist"].synced = false },
		"which is not joined as it":   func(b *bed, _, _ *route) { delete(b.Table.peers, b.peers["core"]) },
		"keeps something":             func(b *bed, _, _ *route) { b.owners["core"].authority.held = false },
		"live scopes":                 func(b *bed, _, _ *route) { b.limits.LiveScopes = 1 },
		"is not watched":              func(b *bed, _, _ *route) { b.owners["core"].live["late"].heap = 7 },
		"and 9 has ended":             func(b *bed, _, _ *route) { b.owners["core"].tombstones.add("old", 9, CauseExpired) },
		"deadlines and watches":       func(b *bed, _, _ *route) { d := &b.owners["core"].deadlines; *d = (*d)[:1] },
		"are out of order at 1":       func(b *bed, _, _ *route) { d := b.owners["core"].deadlines; d.Swap(0, 1) },
		"tombstones":                  func(b *bed, _, _ *route) { b.owners["core"].tombstones.limit = 1 },
		"an empty list of tombstones": func(b *bed, _, _ *route) { b.owners["core"].tombstones.byRef["old"] = nil },
		"not numbered as it came":     func(b *bed, _, _ *route) { b.owners["core"].tombstones.byRef["old"][0].number++ },
		"by ref and":                  func(b *bed, _, _ *route) { delete(b.owners["core"].tombstones.byRef, "old") },
		"is live under":               func(b *bed, live, _ *route) { live.scope.ID.Epoch++ },
		"ended or in a batch":         func(b *bed, live, _ *route) { live.scope.noted = true },
		"another authority":           func(b *bed, live, _ *route) { live.scope.OwnerAuthorized = false },
		"is not its own":              func(b *bed, live, inFlight *route) { live.scope.Version = inFlight.scope.Version },
		"has the link":                func(b *bed, live, _ *route) { live.scope.ParentState = Linked },
		"is kept as 77":               func(b *bed, live, _ *route) { b.routes[77] = live },
		"was drained and is kept":     func(_ *bed, live, _ *route) { live.reason = ReasonScopeEnded },
		"is not among those of":       func(_ *bed, live, _ *route) { delete(live.scope.routes, live) },
		"outlives its peer":           func(b *bed, live, _ *route) { delete(b.Table.peers, live.Provider) },
		"counts: true":                func(_ *bed, live, _ *route) { live.counted = true },
		"captured version":            func(_ *bed, live, _ *route) { live.version = live.scope.Version + 1 },
		"its bind still holds":        func(_ *bed, live, _ *route) { live.holding = true },
		"outlives reserved":           func(_ *bed, live, _ *route) { live.scope.ended = true },
		"is not permitted by":         func(_ *bed, live, _ *route) { live.Principal = ReservedPrincipal("hist") },
		"which is not its":            func(b *bed, live, inFlight *route) { delete(b.routes, live.id) },
		"keeps the presence":          func(_ *bed, _, inFlight *route) { clear(inFlight.scope.holders) },
		"speaks for an owner":         func(b *bed, _, _ *route) { delete(b.owners, "hist") },
		"which is gone":               func(b *bed, live, _ *route) { delete(b.routes, live.id) },
		"binds and has":               func(_ *bed, _, inFlight *route) { inFlight.scope.binds++ },
		"does not know its presence":  func(b *bed, _, inFlight *route) { clear(b.Table.peers[inFlight.Opener].holds) },
		"the presence of":             func(b *bed, _, inFlight *route) { delete(b.Table.peers, inFlight.Opener) },
		"with 2 binds of 1":           func(_ *bed, _, inFlight *route) { inFlight.scope.holders[inFlight.Opener].binding++ },
		"and indexed as":              func(b *bed, _, _ *route) { clear(b.awaiting) },
		"which is not live":           func(b *bed, _, _ *route) { delete(b.owners["core"].live, "p") },
		"is its own ancestor":         func(b *bed, live, _ *route) { b.crosslink(live.scope) },
		"whose owner has synced":      func(b *bed, _, _ *route) { b.owners["never"] = &owner{id: "never", synced: true} },
		"an empty list of children":   func(b *bed, _, _ *route) { b.children[ScopeID{}] = map[*scope]struct{}{} },
		"an empty list waits":         func(b *bed, _, _ *route) { b.awaiting["core"] = map[*scope]struct{}{} },
		"the child reserved":          func(b *bed, _, _ *route) { delete(b.owners["core"].live, "k") },
		"waits and is gone":           func(b *bed, _, _ *route) { delete(b.owners["hist"].live, "waits") },
		"wait of":                     func(b *bed, _, _ *route) { clear(b.children) },
	} {
		b, live, inFlight := newFullBed(t)
		harm(b, live, inFlight)
		require.Contains(t, strings.Join(b.Invariants(), "\n"), law)
	}
}

// crosslink makes the parent s of a child that child's child.
func (b *bed) crosslink(s *scope) {
	for child := range b.children[s.ID] {
		rec := *s.Record
		rec.Parent = &child.ID
		s.Record = &rec
		b.linkLocked(s, Linked)
	}
}

// Release, expiry, a sync that ends everything and every peer's leaving keep the
// laws.
func TestInvariantsHoldOverAnOwnersLife(t *testing.T) {
	b, live, inFlight := newFullBed(t)
	b.Release(inFlight.id)
	require.Empty(t, b.Invariants())
	b.now += 6000
	b.Sweep(b.now)
	require.Empty(t, b.Invariants())
	b.sync("core")
	require.Nil(t, b.routes[live.id])
	require.Empty(t, b.Invariants())
	for name := range b.peers {
		if !strings.HasSuffix(name, " that left") {
			b.leave(name)
			require.Empty(t, b.Invariants())
		}
	}
}
