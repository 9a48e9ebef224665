package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// told is the events after seq, each as kind and id.
func (b *bed) told(seq uint64) []string {
	b.t.Helper()
	events, ok := b.Events(seq, make([]Event, 1000))
	require.True(b.t, ok)
	list := []string{}
	for i, e := range events {
		require.Equal(b.t, seq+uint64(i)+1, e.Seq)
		if e.Kind == EventSynced {
			list = append(list, fmt.Sprintf("synced %s %d", e.Owner.ModuleID, len(e.Scopes)))
			continue
		}
		require.Equal(b.t, e.Owner, e.Scope.ID.Owner)
		list = append(list, fmt.Sprintf("%s %s@%d", e.Kind, e.Scope.ID.Ref, e.Scope.ID.Epoch))
	}
	return list
}

func (b *bed) newest() uint64 {
	_, newest := b.FeedBounds()
	return newest
}

func TestS5_TheFeedTellsWhatTheContractLists(t *testing.T) {
	claim(t, "5.feed.created", "5.feed.ended", "5.feed.changed", "5.feed.synced")
	b := newBed(t)
	b.sync("hist", "k@1 parent=core/s@1")
	b.sync("core", "s@1 child=hist", "e@1", due("x@1", 10))
	require.Equal(t, []string{"synced hist 1", "synced core 3", "changed k@1"}, b.told(0))
	for _, c := range []struct {
		lines []string
		want  []string
	}{
		{[]string{"n@1"}, []string{"created n@1"}},
		{[]string{"n@2"}, []string{"ended n@1", "created n@2"}},
		{[]string{"end n@2"}, []string{"ended n@2"}},
		{[]string{"s@1 child=hist carrier=aft"}, []string{"changed s@1"}},
		{[]string{"s@1 child=hist carrier=aft->a"}, []string{"changed s@1"}},
		{[]string{"s@1 child=hist carrier=aft->a agent=a"}, []string{"changed s@1"}},
		{[]string{"s@1 child=hist carrier=aft->a agent=a delegates"}, []string{"changed s@1"}},
		{[]string{"s@1 child=hist carrier=aft->a agent=a flow=f"}, []string{"changed s@1"}},
		{[]string{"s@1 child=hist carrier=aft->a agent=a run=r"}, []string{"changed s@1"}},
		{[]string{"s@1 child=hist carrier=aft->a agent=a run=r proof=ab"}, []string{}},
		{[]string{"s@1 carrier=aft->a agent=a run=r"}, []string{}},
		{[]string{"s@1 carrier=aft->a agent=a run=r"}, []string{}},
		{[]string{"s@1 worker", "e@1 delegates"}, []string{}},
		{[]string{"end s@1"}, []string{"ended s@1", "changed k@1"}},
	} {
		since := b.newest()
		b.apply("core", c.lines...)
		require.Equal(t, c.want, b.told(since), "%v", c.lines)
	}
	b.apply("core", "g@1")
	b.apply("core", "kid@1 parent=core/g@1")
	b.apply("core", "end kid@1")
	since := b.newest()
	b.apply("core", "end g@1")
	require.Equal(t, []string{"ended g@1"}, b.told(since), "what has ended changes no more")
	require.Empty(t, b.children)
	require.Empty(t, b.awaiting)
	since = b.newest()
	b.Sweep(start + 10)
	require.Equal(t, []string{"ended x@1"}, b.told(since))
	b.refusedApply(CodeInvalidControlBody, "core", "a@1", "a@1")
	require.Equal(t, []string{"ended x@1"}, b.told(since), "a refused call tells nothing")
	b.sync("core", "e@1")
	require.Equal(t, []string{"ended x@1"}, b.told(since), "a later sync is not a first one")
}

func TestS5_AReaderFromASnapshotHasNeitherGapNorRepeat(t *testing.T) {
	claim(t, "5.feed.cursor")
	b := newLimitedBed(t, Limits{Events: 4})
	b.sync("core", "a@1", "b@1")
	snap := b.Snapshot()
	require.Equal(t, []Principal{ReservedPrincipal("core")}, snap.Synced)
	require.Len(t, snap.Scopes, 2)
	require.Same(t, snap, b.Snapshot(), "shared while nothing came")
	b.apply("core", "c@1")
	require.Equal(t, []string{"created c@1"}, b.told(snap.Seq))
	buf := make([]Event, 1)
	events, ok := b.Events(snap.Seq, buf)
	require.True(t, ok)
	require.Len(t, events, 1)
	events, ok = b.Events(b.newest(), buf)
	require.True(t, ok)
	require.Empty(t, events)
	_, ok = b.Events(b.newest()+1, buf)
	require.False(t, ok, "not given out yet")
	for i := range 4 {
		_, ok = b.Events(snap.Seq, buf)
		require.Equal(t, i <= 3, ok)
		b.apply("core", fmt.Sprintf("d%d@1", i))
	}
	_, ok = b.Events(snap.Seq, buf)
	require.False(t, ok, "the ring has gone on")
	oldest, newest := b.FeedBounds()
	require.Equal(t, newest-3, oldest)
	require.Equal(t, []string{"created d0@1", "created d1@1", "created d2@1", "created d3@1"}, b.told(oldest-1))
	require.Len(t, b.Snapshot().Scopes, 7)
	require.Equal(t, newest, b.Snapshot().Seq)
}

func TestS5_WakeIsClosedByTheNextEvent(t *testing.T) {
	claim(t, "5.feed.cursor")
	b := newBed(t)
	b.sync("core", "a@1")
	wake := b.Wake()
	b.apply("core", "a@1")
	b.describe("core/a")
	select {
	case <-wake:
		t.Fatal("woken for nothing")
	default:
	}
	b.apply("core", "b@1")
	<-wake
}

func TestS5_WhatTheReaderForgetsIsKeptByNobody(t *testing.T) {
	b := newLimitedBed(t, Limits{Events: 4})
	b.sync("core", "a@1")
	first := b.newest()
	b.apply("core", "b@1")
	b.apply("core", "c@1")
	b.Forget(first + 1)
	for _, e := range b.feed.ring[:first+1] {
		require.Zero(t, e)
	}
	_, ok := b.Events(first, make([]Event, 1))
	require.False(t, ok, "forgotten")
	require.Equal(t, []string{"created c@1"}, b.told(first+1))
	b.Forget(b.newest() + 9)
	oldest, newest := b.FeedBounds()
	require.Equal(t, newest+1, oldest)
	for i := range 6 { // round the ring
		require.Empty(t, b.told(b.newest()))
		b.apply("core", fmt.Sprintf("d%d@1", i))
		require.Equal(t, []string{fmt.Sprintf("created d%d@1", i)}, b.told(b.newest()-1))
		b.Forget(b.newest())
	}
	require.Equal(t, make([]Event, 4), b.feed.ring)
}
