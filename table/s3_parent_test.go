package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestS3_AParentIsAcceptedFromItsOwnerOrAChildOwnerAtItsLiveEpoch(t *testing.T) {
	claim(t, "3.parent.permitted", "2.carrier.no-parent", "2.parent.fields")
	b := newBed(t)
	b.sync("core", "p@2 child=hist carrier=aft", "own@1 parent=core/p@2")
	require.Equal(t, "linked", b.link("core/own"))
	for owner, want := range map[string]string{"hist": "created", "aft": "scope_parent_not_permitted", "other": "scope_parent_not_permitted"} {
		require.Equal(t, want, outcome(b.sync(owner, "k@1 parent=core/p@2")), owner)
		a := b.apply(owner, "low@1 parent=core/p@1", "high@1 parent=core/p@3", "absent@1 parent=core/q@1")
		for i, got := range outcomesOf(a) {
			require.Equal(t, "scope_parent_not_permitted", got)
			require.Contains(t, a.Results[i].Message, "core/")
		}
	}
	for _, bad := range []string{`{"owner":{"kind":"reserved","module_id":"core"},"ref":"p"}`, `{"ref":"p","scope_epoch":2}`, `"p"`, `{"owner":"core","ref":"p","scope_epoch":2}`, `{"owner":{"kind":"reserved","module_id":"core"},"ref":"p","scope_epoch":2,"x":1}`} {
		_, refused := DecodeSync([]byte(syncBody(1, `{"ref":"k","scope_epoch":1,"kind":"head","parent":`+bad+`}`)))
		require.NotNil(t, refused, bad)
		require.Contains(t, refused.Message, "parent", bad)
	}
}

func TestS3_AChildBeforeItsParentsOwnerIsPendingAndSettles(t *testing.T) {
	claim(t, "3.parent.pending", "11.link.settling")
	b := newBed(t)
	b.sync("hist", "ok@1 parent=core/p@1", "absent@1 parent=core/x@1", "epoch@1 parent=core/p@2", "foreign@1 parent=core/q@1")
	routes := map[string]RouteID{}
	inFlight := map[string]RouteID{}
	versions := map[string]uint64{}
	for _, ref := range []string{"ok", "absent", "epoch", "foreign"} {
		require.Equal(t, "pending", b.link("hist/"+ref))
		routes[ref] = b.open("hist/"+ref, "hist", "tool")
		inFlight[ref] = b.reserve("hist/"+ref, "hist", "tool", false)
		versions[ref] = b.version("hist/" + ref)
	}
	a := b.sync("core", "p@1 child=hist", "q@1")
	require.Equal(t, map[RouteID]string{
		routes["absent"]: "scope_parent_ended", routes["epoch"]: "scope_parent_ended", routes["foreign"]: "scope_parent_ended",
	}, drained(a.Drains), "pending to linked drains nothing")
	require.Equal(t, "linked", b.link("hist/ok"))
	for _, ref := range []string{"absent", "epoch", "foreign"} {
		require.Equal(t, "ended", b.link("hist/"+ref))
	}
	for ref, id := range inFlight {
		require.Greater(t, b.version("hist/"+ref), versions[ref])
		require.Equal(t, StaleChanged, b.Commit(id), ref)
	}
	require.Equal(t, "unchanged", outcome(b.apply("hist", "ok@1 parent=core/p@1")))
}

func TestS3_WhatNoLongerWaitsIsNotSettled(t *testing.T) {
	claim(t, "3.parent.pending")
	b := newBed(t)
	b.sync("hist", "own@1", "moved@1 parent=core/p@1", "gone@1 parent=core/p@1", "dropped@1 parent=core/p@1")
	b.apply("hist", "moved@1 parent=hist/own@1", "dropped@1", "end gone@1")
	since := b.newest()
	require.Empty(t, b.sync("core").Drains)
	require.Equal(t, []string{"synced core 0"}, b.told(since))
	require.Equal(t, "linked", b.link("hist/moved"))
	require.Equal(t, "", b.link("hist/dropped"))
}

func TestS3_AnEmptyFirstSyncEndsPendingLinks(t *testing.T) {
	claim(t, "3.parent.pending")
	b := newBed(t)
	b.sync("hist", "k@1 parent=core/p@1")
	b.sync("core")
	require.Equal(t, "ended", b.link("hist/k"))
}

func TestS3_EveryOrderOfOwnersEndsInTheSameLinks(t *testing.T) {
	claim(t, "3.parent.order", "6.restart")
	sets := map[string][]string{
		"a": {"top@1 child=b child=c", "down@1 parent=c/leaf@1"},
		"b": {"mid@1 parent=a/top@1 child=c", "wrong@1 parent=a/top@9"},
		"c": {"leaf@1 parent=b/mid@1 child=a", "side@1 parent=a/top@1", "forbidden@1 parent=b/wrong@1"},
	}
	want := map[string]string{
		"a/down": "linked", "b/mid": "linked", "b/wrong": "ended or refused",
		"c/leaf": "linked", "c/side": "linked", "c/forbidden": "ended or refused",
	}
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		b := newBed(t)
		for _, owner := range order {
			b.sync(owner, sets[owner]...)
		}
		// Owners re-send their sets: what was refused for the order is not an
		// ancestor here, and nothing that stands moves.
		for _, owner := range order {
			b.sync(owner, sets[owner]...)
		}
		for scope, state := range want {
			got := "ended or refused"
			if b.live(scope) != "" && b.link(scope) != "ended" {
				got = b.link(scope)
			}
			require.Equal(t, state, got, "%s after %v", scope, order)
		}
	}
}

func TestS3_ACycleIsRefused(t *testing.T) {
	claim(t, "3.parent.cycle")
	t.Run("of itself", func(t *testing.T) {
		b := newBed(t)
		require.Equal(t, "scope_parent_not_permitted", outcome(b.sync("core", "s@1 parent=core/s@1")))
	})
	t.Run("of two in one call", func(t *testing.T) {
		b := newBed(t)
		// Refusing the first takes the parent of the second away.
		a := b.sync("core", "a@1 parent=core/b@1", "b@1 parent=core/a@1", "kid@1 parent=core/b@1", "free@1")
		require.Equal(t, []string{"scope_parent_not_permitted", "scope_parent_not_permitted", "scope_parent_not_permitted", "created"}, outcomesOf(a))
	})
	t.Run("by update", func(t *testing.T) {
		b := newBed(t)
		b.sync("core", "a@1", "b@1 parent=core/a@1", "c@1 parent=core/b@1")
		require.Equal(t, "scope_parent_not_permitted", outcome(b.apply("core", "a@1 parent=core/c@1")))
		require.Equal(t, "linked", b.link("core/b"))
		require.Equal(t, []string{"updated", "updated"}, outcomesOf(b.apply("core", "a@1 parent=core/c@1", "b@1")), "the set after the call counts")
	})
	t.Run("across owners", func(t *testing.T) {
		b := newBed(t)
		b.sync("core", "p@1 child=hist")
		b.sync("hist", "k@1 parent=core/p@1 child=core")
		require.Equal(t, "scope_parent_not_permitted", outcome(b.apply("core", "p@1 child=hist parent=hist/k@1")))
		require.Equal(t, "linked", b.link("hist/k"))
	})
	t.Run("through a pending link", func(t *testing.T) {
		b := newBed(t)
		b.sync("hist", "k@1 parent=core/p@1 child=core")
		a := b.sync("core", "p@1 child=hist parent=hist/k@1")
		require.Equal(t, "scope_parent_not_permitted", outcome(a))
		require.Equal(t, "ended", b.link("hist/k"), "its parent is not there")
	})
	t.Run("through pending links of three owners", func(t *testing.T) {
		b := newBed(t)
		b.sync("a", "x@1 parent=b/x@1 child=c")
		b.sync("b", "x@1 parent=c/x@1 child=a")
		a := b.sync("c", "x@1 parent=a/x@1 child=b")
		require.Equal(t, "scope_parent_not_permitted", outcome(a))
	})
	t.Run("an unrelated cycle does not spread", func(t *testing.T) {
		b := newBed(t)
		a := b.sync("core", "kid@1 parent=core/top@1", "a@1 parent=core/b@1", "b@1 parent=core/a@1", "top@1")
		require.Equal(t, []string{"created", "scope_parent_not_permitted", "scope_parent_not_permitted", "created"}, outcomesOf(a))
	})
	t.Run("a link to an ended epoch joins nothing", func(t *testing.T) {
		b := newBed(t)
		b.sync("core", "m@1", "x@1 parent=core/m@1", "r@1")
		b.apply("core", "m@2 parent=core/r@1")
		require.Equal(t, "updated", outcome(b.apply("core", "r@1 parent=core/x@1")))
	})
	t.Run("nor does a new session hang on what hung on its old one", func(t *testing.T) {
		b := newBed(t)
		b.sync("core", "a@1", "k@1 parent=core/a@1")
		require.Equal(t, "scope_parent_not_permitted", outcome(b.apply("core", "a@2 parent=core/k@1")))
	})
	t.Run("settling judges it too", func(t *testing.T) {
		b := newBed(t)
		b.sync("hist", "k@1 child=a")
		b.sync("a", "y@1 parent=hist/k@1 child=c")
		b.apply("hist", "k@2 parent=c/x@1")
		require.Equal(t, "created", outcome(b.sync("c", "x@1 parent=a/y@1 child=hist")))
		require.Equal(t, "ended", b.link("hist/k"))
	})
	t.Run("one that a refusal brings back is found", func(t *testing.T) {
		b := newBed(t)
		b.sync("core", "j@1", "c@1 parent=core/j@1", "m@1 parent=core/c@1")
		// c and n loop, and j hangs on them. Refused, c hangs on j again.
		a := b.apply("core", "j@1 parent=core/m@1", "c@1 parent=core/n@1", "n@1 parent=core/c@1")
		require.Equal(t, []string{"scope_parent_not_permitted", "scope_parent_not_permitted", "created"}, outcomesOf(a))
	})
	t.Run("an update that would close one falls back and its kin are judged again", func(t *testing.T) {
		b := newBed(t)
		b.sync("core", "a@1", "b@1 parent=core/a@1")
		a := b.apply("core", "a@1 parent=core/b@1 child=hist", "n@1 parent=core/a@1")
		require.Equal(t, []string{"scope_parent_not_permitted", "created"}, outcomesOf(a), "a stands as it was held")
		require.Equal(t, "linked", b.link("core/n"))
	})
}

func TestS3_DeepChainsAreLinkedInOneCall(t *testing.T) {
	claim(t, "3.parent.cycle")
	b := newBed(t)
	const n = MaxLiveScopes
	chain := repeat(n, func(i int) string { return fmt.Sprintf("s%d@1 parent=core/s%d@1", i, i+1) })
	chain[n-1] = fmt.Sprintf("s%d@1", n-1)
	a := b.sync("core", chain...) // leaf first
	for _, r := range a.Results {
		require.Equal(t, Created, r.Outcome, r.Ref)
	}
	a = b.apply("core", fmt.Sprintf("s%d@1 parent=core/s0@1", n-1))
	require.Equal(t, "scope_parent_not_permitted", outcome(a))
	chain[n-1] = fmt.Sprintf("t%d@1 parent=core/absent@1", n-1)
	fresh := newBed(t)
	for _, r := range fresh.sync("core", chain...).Results {
		require.Equal(t, Refused, r.Outcome, "the root is refused, and so is all that hangs on it")
	}
}

func TestS3_AParentsEndEndsItsChildrensLinksAndRemovesNone(t *testing.T) {
	claim(t, "3.parent.ended", "3.parent.new-session", "3.parent.one-level")
	ways := map[string]func(b *bed){
		"omitted":  func(b *bed) { b.sync("core") },
		"ended":    func(b *bed) { b.apply("core", "end p@1") },
		"replaced": func(b *bed) { b.apply("core", "p@2 child=hist") },
		"swept": func(b *bed) {
			b.now = start + 10
			_, drains := b.Sweep(b.now)
			require.Len(t, drains, 1)
		},
		"swept in a call": func(b *bed) { b.now = start + 10; b.apply("core") },
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.sync("core", due("p@1 child=hist", 10))
			b.sync("hist", "k@1 parent=core/p@1", "grand@1 parent=hist/k@1")
			own, grand := b.open("hist/k", "hist", "tool"), b.open("hist/grand", "hist", "tool")
			end(b)
			require.Equal(t, "ended", b.link("hist/k"))
			require.False(t, b.Release(own), "drained")
			require.Equal(t, "linked", b.link("hist/grand"))
			require.True(t, b.Release(grand))
			require.Equal(t, "unchanged", outcome(b.apply("hist", "k@1 parent=core/p@1")), "an ended link is kept")
			b.apply("core", "p@3 child=hist")
			require.Equal(t, "ended", b.link("hist/k"), "a new session adopts nothing")
			require.Equal(t, "ended", b.link("hist/k"))
			b.open("hist/k", "hist", "tool")
			require.Equal(t, "updated", outcome(b.apply("hist", "k@1 parent=core/p@3")))
			require.Equal(t, "linked", b.link("hist/k"))
		})
	}
}

func TestS3_LinksAreCheckedAgainstTheSetAfterTheCall(t *testing.T) {
	claim(t, "3.parent.post-set", "3.parent.cascade")
	b := newBed(t)
	b.sync("core", "p@1", due("e@1", 10), "q@1", "k@1 parent=core/q@1")
	a := b.apply("core", "a@1 parent=core/new@1", "new@1", "b@1 parent=core/p@1", "c@1 parent=core/q@1", "end p@1")
	require.Equal(t, []string{"created", "created", "scope_parent_not_permitted", "created"}, outcomesOf(a))
	a = b.apply("core", "q@2", "d@1 parent=core/q@1", "f@1 parent=core/q@2", "k@1 parent=core/q@1")
	require.Equal(t, []string{"replaced", "scope_parent_not_permitted", "created", "updated"}, outcomesOf(a))
	require.Equal(t, Ended, a.Results[3].ParentState, "re-sent unchanged, it moved with its parent's end")
	b.now = start + 10
	a = b.apply("core", "g@1 parent=core/e@1", "bad@1 delegates", "h@1 parent=core/bad@1", "i@1 parent=core/h@1")
	require.Equal(t, []string{"scope_parent_not_permitted", "scope_delegates_without_agent", "scope_parent_not_permitted", "scope_parent_not_permitted"}, outcomesOf(a))
	a = b.sync("core", "q@2", "kid@1 parent=core/new@1")
	require.Equal(t, []string{"unchanged", "scope_parent_not_permitted"}, outcomesOf(a), "what a full sync omits is no parent")
}

func TestS3_AChildPointedElsewhereInTheCallThatEndsItsParentStaysLinked(t *testing.T) {
	claim(t, "3.parent.ended", "11.link.new-only")
	b := newBed(t)
	b.sync("core", "p@1", "q@1", "k@1 parent=core/p@1")
	r := b.open("core/k", "core", "tool")
	a := b.apply("core", "end p@1", "k@1 parent=core/q@1")
	require.Equal(t, "updated", outcome(a))
	require.Equal(t, "linked", b.link("core/k"))
	require.Empty(t, a.Drains)
	b.apply("core", "k@1")
	require.Equal(t, "", b.link("core/k"))
	require.Empty(t, b.apply("core", "end q@1").Drains)
	require.True(t, b.Release(r))
}
