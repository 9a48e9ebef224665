package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// longSync is a body long enough to be recalled.
func longSync(generation uint64, lines ...string) []byte {
	return []byte(syncBody(generation, append(repeat(60, benchRecord), lines...)...))
}

func TestRecall_TheSameBytesAreTheSameRecord(t *testing.T) {
	b := newBed(t)
	sync := func(body []byte) (*SyncCall, *Applied) {
		call, refused := b.Table.DecodeSync("core", body)
		require.Nil(t, refused)
		records := make([]*Record, len(call.entries))
		for i := range call.entries {
			records[i] = call.entries[i].record
		}
		a, refused := b.Table.Sync(b.claim("core"), call, start)
		require.Nil(t, refused)
		return &SyncCall{entriesOf(records)}, a
	}
	first, _ := sync(longSync(1, "x@1 agent=a", "bad@1 delegates"))
	second, a := sync(longSync(2, "x@1 agent=b", "bad@1 delegates"))
	for i := range 60 {
		require.Same(t, first.entries[i].record, second.entries[i].record)
		require.Equal(t, Unchanged, a.Results[i].Outcome)
	}
	require.Equal(t, Updated, a.Results[60].Outcome, "other bytes are decoded")
	require.Equal(t, CodeDelegatesWithoutAgent, a.Results[61].Code, "what decoding found is recalled with the record")
}

func entriesOf(records []*Record) call {
	var c call
	for _, r := range records {
		c.entries = append(c.entries, entry{record: r})
	}
	return c
}

func TestRecall_ARefusedCallLeavesNothingBehind(t *testing.T) {
	b := newBed(t)
	call, refused := b.Table.DecodeSync("core", longSync(1))
	require.Nil(t, refused)
	_, refused = b.Table.Sync(Claim{Peer: b.peer("core"), Owner: "core"}, call, start)
	require.Equal(t, CodeSyncNotAuthority, refused.Code)
	kept, _ := b.Table.recalls.Load("core")
	require.Empty(t, kept.(*recall).known().records)
}

func TestRecall_WhatIsMalformedIsRefusedAsWithoutIt(t *testing.T) {
	b := newBed(t)
	good := string(longSync(1))
	for _, bad := range []string{
		strings.Replace(good, `"ref":"session-00007"`, `"ref":"session-00007","colour":"red"`, 1),
		strings.Replace(good, `"ref":"session-00007"`, `"ref":"session-00007","ref":"y"`, 1),
		strings.Replace(good, `"kind":"head"`, `"kind":5`, 1),
		good[:len(good)-2], good + "x", strings.Replace(good, "session-00003", "session-\xff", 1),
	} {
		require.NotEqual(t, good, bad)
		_, plain := DecodeSync([]byte(bad))
		_, recalled := b.Table.DecodeSync("core", []byte(bad))
		require.NotNil(t, plain)
		require.Equal(t, plain.Code, recalled.Code)
		if !strings.Contains(plain.Message, "not valid JSON") {
			require.Equal(t, plain, recalled)
		}
	}
}

// TestRecall_OtherOrdersAreRecognizedToo moves, drops and adds records.
func TestRecall_OtherOrdersAreRecognizedToo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBed(t)
		all := repeat(80, func(i int) string { return fmt.Sprintf("s%d@1 carrier=aft->a,b,c", i) })
		records := map[string]*Record{}
		for generation := range 4 {
			lines := rapid.Permutation(all).Draw(rt, "order")
			if rapid.Bool().Draw(rt, "sorted") {
				lines = slices.Clone(all)
			}
			lines = lines[:rapid.IntRange(70, 80).Draw(rt, "kept")]
			at := rapid.IntRange(0, len(lines)-1).Draw(rt, "changed")
			lines[at] += fmt.Sprintf(" child=c%d", generation)
			call, refused := b.Table.DecodeSync("core", []byte(syncBody(uint64(generation+1), lines...)))
			require.Nil(rt, refused)
			plain := mustDecodeSync(t, []byte(syncBody(1, lines...)))
			require.Equal(rt, plain.index.list, call.index.list)
			for i, e := range call.entries {
				require.Equal(rt, plain.entries[i].record, e.record)
			}
			a, refused := b.Table.Sync(b.claim("core"), call, start)
			require.Nil(rt, refused)
			for i, r := range a.Results {
				same := records[r.Ref] != nil && records[r.Ref].same(plain.entries[i].record)
				require.Equal(rt, same, r.Outcome == Unchanged)
			}
			clear(records)
			for _, s := range b.Scopes("core") {
				records[s.ID.Ref] = s.Record
			}
		}
	})
}

func BenchmarkRecall10000(b *testing.B) {
	bed := newBed(b)
	body := []byte(syncBody(1, repeat(10_000, benchRecord)...))
	call, _ := bed.Table.DecodeSync("core", body)
	if _, refused := bed.Table.Sync(bed.claim("core"), call, start); refused != nil {
		b.Fatal(refused.Message)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		bed.Table.DecodeSync("core", body)
	}
}
