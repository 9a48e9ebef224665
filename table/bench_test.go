package table

import (
	"fmt"
	"strings"
	"testing"
)

// benchRecord is a record of ordinary size.
func benchRecord(i int) string {
	return fmt.Sprintf("session-%05d@1 agent=agent-%d carrier=aft->plexus,prefrontal-core carrier=broca child=magic-context", i, i%50)
}

func benchBed(b *testing.B, owners, n int) *bed {
	b.Helper()
	bed := &bed{
		Table: New(Config{Incarnation: strings.Repeat("a", 32), AuthorityOwners: ownerIDs(owners)}),
		t:     b, now: start, peers: map[string]Peer{}, gens: map[string]uint64{},
	}
	lines := repeat(n, benchRecord)
	for _, id := range ownerIDs(owners) {
		bed.sync(id, lines...)
	}
	return bed
}

func ownerIDs(n int) []string {
	return append([]string{"core"}, repeat(n-1, func(i int) string { return fmt.Sprintf("core-%d", i) })...)
}

func mustDecodeSync(b testing.TB, body []byte) *SyncCall {
	call, refused := DecodeSync(body)
	if refused != nil {
		b.Fatal(refused.Message)
	}
	return call
}

// BenchmarkSync10000 measures a full set of 10,000 records, whole and in its
// parts: what runs off the lock is decode.
func BenchmarkSync10000(b *testing.B) {
	const n = 10_000
	lines := repeat(n, benchRecord)
	changed := append([]string(nil), lines...)
	changed[n/2] += " child=other"
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		body := []byte(syncBody(1, lines...))
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			mustDecodeSync(b, body)
		}
	})
	for name, c := range map[string]struct {
		fresh bool
		even  []string
	}{"first": {true, lines}, "unchanged": {false, lines}, "one-change": {false, changed}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			bed := benchBed(b, 1, n)
			odd, even := []byte(syncBody(0, lines...)), []byte(syncBody(0, c.even...))
			generation := uint64(10)
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				body := odd
				if i%2 == 0 {
					body = even
				}
				call := mustDecodeSync(b, body)
				generation++
				call.generation = generation
				if c.fresh {
					bed = newBed(b)
				}
				claim := bed.claim("core")
				b.StartTimer()
				if _, refused := bed.Table.Sync(claim, call, start); refused != nil {
					b.Fatal(refused.Message)
				}
			}
		})
	}
}

// BenchmarkApplyOne measures a delta of one record, decoding included. Its cost
// must not grow with what is held.
func BenchmarkApplyOne(b *testing.B) {
	for _, held := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			b.ReportAllocs()
			bed := benchBed(b, 1, held)
			bodies := [2][]byte{
				[]byte(applyBody(0, benchRecord(held/2)+" child=other")),
				[]byte(applyBody(0, benchRecord(held/2))),
			}
			claim := bed.claim("core")
			generation := uint64(10)
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				call, _ := DecodeApply(bodies[i%2])
				generation++
				call.generation = generation
				if _, refused := bed.Table.Apply(claim, call, start); refused != nil {
					b.Fatal(refused.Message)
				}
			}
		})
	}
}

// BenchmarkRoute measures a bind's whole life under the table with 10,000 held.
func BenchmarkRoute(b *testing.B) {
	bed := benchBed(b, 1, 10_000)
	r := Reservation{
		Scope: parseKey("core/session-05000"), Opener: bed.peer("opener"), Provider: bed.peer("module"),
		Principal: ReservedPrincipal("aft"), Module: "plexus", Hold: true,
	}
	judge := func(s State) bool { return s.Live.Record.Permits(r.Principal, r.Module) }
	b.Run("admit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			id, _, _ := bed.Reserve(r, judge)
			bed.Release(id)
		}
	})
	b.Run("admit-commit-release", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			id, _, _ := bed.Reserve(r, judge)
			if bed.Commit(id) != Committed {
				b.Fatal("not committed")
			}
			bed.Release(id)
		}
	})
	b.Run("describe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bed.Table.Describe(r.Scope)
		}
	})
}

// BenchmarkSweep measures a sweep that finds nothing among 10,000 deadlines, and
// one that ends all of them.
func BenchmarkSweep(b *testing.B) {
	lines := repeat(10_000, func(i int) string { return due(fmt.Sprintf("s%d@1", i), int64(1000+i)) })
	b.Run("nothing", func(b *testing.B) {
		b.ReportAllocs()
		bed := newBed(b)
		bed.sync("core", lines...)
		for b.Loop() {
			bed.Sweep(start)
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		body := []byte(syncBody(1, lines...))
		for b.Loop() {
			b.StopTimer()
			bed := newBed(b)
			if _, refused := bed.Table.Sync(bed.claim("core"), mustDecodeSync(b, body), start); refused != nil {
				b.Fatal(refused.Message)
			}
			b.StartTimer()
			bed.Sweep(start + 20_000)
		}
	})
}

// BenchmarkMemory reports the heap that records hold, by owner and record.
func BenchmarkMemory(b *testing.B) {
	for _, owners := range []int{1, 10} {
		b.Run(fmt.Sprint(owners*10_000), func(b *testing.B) {
			var held *bed
			before := allocated()
			for b.Loop() {
				held = benchBed(b, owners, 10_000)
			}
			after := allocated()
			b.ReportMetric(float64(after-before)/float64(owners*10_000), "B/record")
			b.ReportMetric(float64(after-before)/(1<<20), "MiB")
			held.t = nil
		})
	}
}
