package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkGrowth measures what a call costs beside more and more of what it does
// not name. What grows with something says so in the README's section on speed.
func BenchmarkGrowth(b *testing.B) {
	b.Run("owners", func(b *testing.B) {
		for _, n := range []int{1, 10, 100} {
			growth(b, fmt.Sprint(n), newGrown(b, n, 100))
		}
	})
	b.Run("records", func(b *testing.B) {
		for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
			each := min(n, MaxLiveScopes)
			before := allocated()
			g := newGrown(b, n/each, each)
			held := allocated() - before
			growth(b, fmt.Sprint(n), g)
			b.Run(fmt.Sprintf("%d/memory", n), func(b *testing.B) {
				b.ReportMetric(float64(held)/float64(n), "B/record")
				b.ReportMetric(0, "ns/op")
			})
		}
	})
	b.Run("routes", func(b *testing.B) {
		for _, n := range []int{10, 1_000, 60_000} {
			g := newGrown(b, 1, 1000)
			for i := range n {
				g.route(i % 1000)
			}
			growth(b, fmt.Sprint(n), g)
		}
	})
	b.Run("drains", func(b *testing.B) {
		for _, n := range []int{10, 100, 1_000, 10_000} {
			b.Run(fmt.Sprint(n), func(b *testing.B) { growthOfDrains(b, n) })
		}
	})
}

// grown is a table with owners that hold the same number of records each.
type grown struct {
	*bed
	each       int
	generation uint64
	body       string // of an owner's full set, without its generation
}

func newGrown(b testing.TB, owners, each int) *grown {
	g := &grown{each: each, generation: 1, bed: &bed{
		Table: New(Config{Incarnation: strings.Repeat("a", 32), AuthorityOwners: ownerIDs(owners)}),
		t:     b, now: start, peers: map[string]Peer{}, gens: map[string]uint64{},
	}}
	var w strings.Builder
	for i := range each {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(g.record(i, ""))
	}
	g.body = w.String()
	for _, id := range ownerIDs(owners) {
		g.full(id)
	}
	return g
}

func (g *grown) record(i int, more string) string {
	return fmt.Sprintf(`{"attributes":{"agent_id":"agent-%05d"%s},"carriers":[{"principal":{"kind":"reserved","module_id":"broca"}},`+
		`{"principal":{"kind":"reserved","module_id":"aft"},"targets":["plexus","prefrontal-core"]}],"kind":"head","ref":"session-%05d","scope_epoch":1}`, i, more, i)
}

// full sends an owner's whole set.
func (g *grown) full(owner string) {
	body := fmt.Sprintf(`{"op":"scope.sync","generation":%d,"scopes":[%s]}`, g.generation, g.body)
	call, refused := g.DecodeSync(owner, []byte(body))
	require.Nil(g.t, refused)
	_, refused = g.Sync(g.claim(owner), call, g.now)
	require.Nil(g.t, refused)
}

func (g *grown) route(i int) RouteID {
	id, _, _ := g.Reserve(Reservation{
		Scope: Key{ReservedPrincipal("core"), fmt.Sprintf("session-%05d", i)}, Opener: g.peer("opener"), Provider: g.peer("module"),
		Principal: ReservedPrincipal("aft"), Module: "plexus",
	}, func(s State) bool { return s.Live.Record.Permits(ReservedPrincipal("aft"), "plexus") })
	require.Equal(g.t, Committed, g.Commit(id))
	return id
}

// growth measures a table's calls, none of which names more than one record but
// the unchanged set.
func growth(b *testing.B, size string, g *grown) {
	key := Key{ReservedPrincipal("core"), fmt.Sprintf("session-%05d", g.each/2)}
	for _, c := range []struct {
		name string
		do   func(i int)
	}{
		{"apply", func(i int) {
			g.generation++
			body := fmt.Sprintf(`{"generation":%d,"upsert":[%s],"end":[]}`, g.generation, g.record(0, []string{"", `,"delegates":true`}[i%2]))
			call, _ := DecodeApply([]byte(body))
			_, refused := g.Apply(g.claim("core"), call, g.now)
			require.Nil(g.t, refused)
		}},
		{"open", func(int) { g.Release(g.route(g.each / 2)) }},
		{"describe", func(int) { g.Table.Describe(key) }},
		{"sweep", func(int) { g.Sweep(g.now) }},
	} {
		b.Run(size+"/"+c.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				c.do(i)
				took = append(took, time.Since(began))
			}
			reportMedian(b, took, "ns", 1)
		})
	}
}

// growthOfDrains ends a session with n live routes at once.
func growthOfDrains(b *testing.B, n int) {
	g := newGrown(b, 1, 1)
	var took []time.Duration
	for epoch := uint64(1); b.Loop(); epoch++ {
		for range n {
			g.route(0)
		}
		g.generation++
		next := fmt.Sprintf(`{"generation":%d,"upsert":[{"carriers":[{"principal":{"kind":"reserved","module_id":"aft"}}],"kind":"head","ref":"session-00000","scope_epoch":%d}],"end":[]}`, g.generation, epoch+1)
		call, _ := DecodeApply([]byte(next))
		began := time.Now()
		a, refused := g.Apply(g.claim("core"), call, g.now)
		if refused != nil || len(a.Drains) != n {
			b.Fatal("not drained")
		}
		took = append(took, time.Since(began))
	}
	reportMedian(b, took, "ns/route", n)
}

// reportMedian reports the median in place of the mean, which whatever else runs
// on the machine spoils.
func reportMedian(b *testing.B, took []time.Duration, unit string, by int) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/float64(by), unit)
	b.ReportMetric(0, "ns/op")
}
