package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestRecall_AnotherRefInTheSamePlace renames one record of a set.
func TestRecall_AnotherRefInTheSamePlace(t *testing.T) {
	b := newBed(t)
	lines := repeat(80, func(i int) string { return fmt.Sprintf("s%d@1 carrier=aft->a,b,c", i) })
	sync := func(generation uint64) (*Applied, *Refusal) {
		call, refused := b.Table.DecodeSync("core", []byte(syncBody(generation, lines...)))
		require.Nil(t, refused)
		return b.Table.Sync(b.claim("core"), call, start)
	}
	_, refused := sync(1)
	require.Nil(t, refused)
	lines[7] = "renamed@1"
	a, refused := sync(2)
	require.Nil(t, refused)
	require.Equal(t, []string{"s7@1"}, endedRefs(a))
	require.Equal(t, "1", b.live("core/renamed"))
	lines[7] = "s8@1"
	_, refused = sync(3)
	require.Equal(t, CodeInvalidControlBody, refused.Code, "it is there twice")
}

// TestRecall_WhatHappenedBetweenTwoSetsCounts ends, changes and expires records
// before the same bytes come again.
func TestRecall_WhatHappenedBetweenTwoSetsCounts(t *testing.T) {
	b := newBed(t)
	lines := append(repeat(80, func(i int) string { return fmt.Sprintf("s%d@1 carrier=aft->a,b,c", i) }), due("late@1", 1000))
	sync := func() []string {
		call, refused := b.Table.DecodeSync("core", []byte(syncBody(b.nextGen("core"), lines...)))
		require.Nil(t, refused)
		a, refused := b.Table.Sync(b.claim("core"), call, b.now)
		require.Nil(t, refused)
		return outcomesOf(a)
	}
	sync()
	b.apply("core", "end s3@1", "s4@1 child=other")
	b.now += 2000
	got := sync()
	require.Equal(t, string(CodeEpochEnded), got[3])
	require.Equal(t, "updated", got[4])
	require.Equal(t, "unchanged", got[5])
	require.Equal(t, string(CodeExpired), got[80])
	require.Equal(t, got[3], sync()[3], "and again")
}

// BenchmarkRecall10000 sends a full set again, from its body to its reply.
func BenchmarkRecall10000(b *testing.B) {
	g := newGrown(b, 1, 10_000)
	bodies := [2]string{g.body, strings.Replace(g.body, "agent-00000", "agent-xxxxx", 1)}
	for name, changes := range map[string]int{"unchanged": 0, "one-change": 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				g.generation++
				body := fmt.Appendf(nil, `{"op":"scope.sync","generation":%d,"scopes":[%s]}`, g.generation, bodies[i%2*changes])
				began := time.Now()
				call, _ := g.DecodeSync("core", body)
				a, refused := g.Sync(g.claim("core"), call, start)
				if refused != nil {
					b.Fatal(refused.Message)
				}
				a.AppendReply(make([]byte, 0, a.ReplyRoom()))
				took = append(took, time.Since(began))
			}
			reportMedian(b, took, "ns", 1)
		})
	}
}
