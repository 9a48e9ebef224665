package scopewatch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

func TestS5_TheFeedIsASnapshotThenCreatedEndedChangedAndSynced(t *testing.T) {
	f := newFake(t, Params{})
	corr, body := f.request(wire.OpScopeSubscribe)
	require.Len(t, body, 1, "no cursor, every owner")
	f.forgot(bound)
	f.deliver(wire.StreamData, corr, snapshot(3, []Principal{owner}, stamp(owner, "s", 7)))
	f.knows(Live, bound)
	f.knows(Replaced, Binding{owner, "s", 6})
	f.knows(Ended, Binding{owner, "t", 1})
	f.deliver(wire.StreamData, corr, happened(4, "created", owner, "t", 1))
	f.knows(Live, Binding{owner, "t", 1})
	f.deliver(wire.StreamData, corr, happened(5, "changed", owner, "t", 1))
	f.knows(Live, Binding{owner, "t", 1})
	f.deliver(wire.StreamData, corr, happened(6, "ended", owner, "t", 1))
	f.knows(Ended, Binding{owner, "t", 1})
	f.deliver(wire.StreamData, corr, happened(7, "ended", owner, "s", 7))
	f.deliver(wire.StreamData, corr, happened(8, "created", owner, "s", 8))
	f.knows(Replaced, bound)
	f.deliver(wire.StreamData, corr, doc{"cursor": at(9), "kind": "a later one", "owner": owner, "ref": "s"})
	f.knows(Replaced, bound)
	f.quiet()
}

func TestS5_AScopeThatIsNotInTheSyncedSetIsEnded(t *testing.T) {
	f := newFake(t, Params{})
	corr, _ := f.request(wire.OpScopeSubscribe)
	f.deliver(wire.StreamData, corr, snapshot(0, nil))
	f.forgot(bound)
	f.deliver(wire.StreamData, corr, firstSync(1, owner, stamp(owner, "other", 1)))
	f.knows(Ended, bound)
	f.knows(Live, Binding{owner, "other", 1})
	f.forgot(Binding{other, "s", 7})
}

func TestS5_BeforeTheOwnersSyncedAMissingScopeIsHeldNeverEnded(t *testing.T) {
	f := newFake(t, Params{})
	corr, _ := f.request(wire.OpScopeSubscribe)
	f.deliver(wire.StreamData, corr, snapshot(9, []Principal{other}))
	f.forgot(bound)
	f.knows(Ended, Binding{other, "s", 7})
	page := firstSync(10, owner, stamp(owner, "a", 1))
	delete(page, "cursor")
	page["more"] = true
	f.deliver(wire.StreamData, corr, page)
	f.forgot(bound) // the set is not whole
	f.deliver(wire.StreamData, corr, firstSync(10, owner, stamp(owner, "s", 7)))
	f.knows(Live, bound)
	f.knows(Live, Binding{owner, "a", 1})
}

func TestS5_ASnapshotCountsWhenItIsWhole(t *testing.T) {
	f := newFake(t, Params{})
	corr, _ := f.request(wire.OpScopeSubscribe)
	for i := range 3 {
		page := snapshot(9, []Principal{owner}, stamp(owner, fmt.Sprint(i), 1))
		if i > 0 {
			delete(page, "owners_synced") // it is on the first
		}
		if i < 2 {
			delete(page, "cursor")
			page["more"] = true
		}
		f.forgot(Binding{owner, "0", 1})
		f.deliver(wire.StreamData, corr, page)
	}
	for i := range 3 {
		f.knows(Live, Binding{owner, fmt.Sprint(i), 1})
	}
	f.knows(Ended, bound)
}

func TestS5_ALaggedSubscriberResumesAtItsLastCursor(t *testing.T) {
	f := newFake(t, Params{})
	corr, _ := f.request(wire.OpScopeSubscribe)
	f.deliver(wire.StreamData, corr, snapshot(3, []Principal{owner}, stamp(owner, "s", 7)))
	f.deliver(wire.StreamData, corr, happened(4, "created", owner, "t", 1))
	page := firstSync(5, other, stamp(other, "a", 1))
	delete(page, "cursor")
	page["more"] = true
	f.deliver(wire.StreamData, corr, page)
	f.deliver(wire.Error, corr, refusal(wire.CodeSubscriberLagged))
	corr, body := f.request(wire.OpScopeSubscribe)
	require.Equal(t, doc{"daemon_incarnation": "i", "seq": 4.}, body["since"], "a set that was not whole is sent again")
	f.forgot(bound) // it was told that it misses events
	f.deliver(wire.StreamData, corr, firstSync(5, other, stamp(other, "b", 1)))
	f.knows(Live, bound)
	f.knows(Live, Binding{owner, "t", 1})
	f.knows(Live, Binding{other, "b", 1})
	f.knows(Ended, Binding{other, "a", 1})
	require.NoError(t, f.w.Err())
}

func TestS5_ACursorThatIsTooOldOrForeignLeadsToANewSnapshot(t *testing.T) {
	for _, code := range []string{wire.CodeCursorTooOld, wire.CodeCursorIncarnation} {
		f := newFake(t, Params{})
		corr, _ := f.request(wire.OpScopeSubscribe)
		f.deliver(wire.StreamData, corr, snapshot(3, []Principal{owner}, stamp(owner, "s", 7)))
		f.deliver(wire.Error, corr, refusal(wire.CodeSubscriberLagged))
		corr, _ = f.request(wire.OpScopeSubscribe)
		f.deliver(wire.Error, corr, refusal(code))
		corr, body := f.request(wire.OpScopeSubscribe)
		require.NotContains(t, body, "since", code)
		f.forgot(bound)
		f.deliver(wire.StreamData, corr, snapshot(90, nil))
		f.forgot(bound) // nobody has synced yet
		f.deliver(wire.Error, corr, refusal(code))
		require.Error(t, f.w.Err(), "a cursor that was not given can't be refused")
		f.quiet()
	}
}

func TestS6_ANewConnectionForgetsWhatAnotherIncarnationTold(t *testing.T) {
	f := newFake(t, Params{})
	corr, _ := f.request(wire.OpScopeSubscribe)
	f.deliver(wire.StreamData, corr, snapshot(3, []Principal{owner}, stamp(owner, "s", 7)))
	f.w.Lost()
	f.forgot(bound)
	f.w.Follow(f, []string{wire.OpScopeSubscribe})
	corr, body := f.request(wire.OpScopeSubscribe)
	require.NotContains(t, body, "since")
	f.deliver(wire.StreamData, corr, snapshot(0, nil))
	f.forgot(bound)
	f.deliver(wire.StreamData, corr, firstSync(1, owner))
	f.knows(Ended, bound)
}

func TestAFeedThatCantBeReadIsGivenUp(t *testing.T) {
	for name, spoil := range map[string]func(f *fakeRouter, corr uint64){
		"no JSON": func(f *fakeRouter, corr uint64) {
			require.True(f.t, f.w.Take(wire.Frame{Header: wire.Header{Type: wire.StreamData, Corr: corr}, Body: []byte("{")}))
		},
		"an array for a stamp": func(f *fakeRouter, corr uint64) {
			f.deliver(wire.StreamData, corr, doc{"kind": "snapshot", "scopes": []any{[]any{}}})
		},
		"refused": func(f *fakeRouter, corr uint64) { f.deliver(wire.Error, corr, refusal("not_registered")) },
		"ended":   func(f *fakeRouter, corr uint64) { f.deliver(wire.StreamEnd, corr, nil) },
	} {
		f := newFake(t, Params{})
		corr, _ := f.request(wire.OpScopeSubscribe)
		f.deliver(wire.StreamData, corr, snapshot(3, []Principal{owner}, stamp(owner, "s", 7)))
		spoil(f, corr)
		require.Error(t, f.w.Err(), name)
		f.forgot(bound)
		f.quiet()
	}
}

func TestFramesOfOthersAreLeftToThem(t *testing.T) {
	f := newFake(t, Params{})
	corr, _ := f.request(wire.OpScopeSubscribe)
	for _, h := range []wire.Header{
		{Type: wire.StreamData, Corr: corr + 1},
		{Type: wire.StreamData, Corr: corr, Channel: 3, Epoch: 1},
		{Type: wire.Request, Corr: corr},
		{Type: wire.Push},
	} {
		require.False(t, f.w.Take(wire.Frame{Header: h}))
	}
	f.w.Lost()
	require.False(t, f.w.Take(wire.Frame{Header: wire.Header{Type: wire.StreamData, Corr: corr}}))
}
