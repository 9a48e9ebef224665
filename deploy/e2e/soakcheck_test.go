package e2e

import (
	"context"
	"maps"
	"slices"
	"time"

	"scopeward/sidecar/operator/api"

	"github.com/stretchr/testify/require"
)

// sample is what must stay flat.
type sample struct {
	footprint
	resident float64 // bytes
}

// check lets everything stand still and compares the openers, the model, the
// index and the router.
func (s *soak) check() {
	s.t.Helper()
	s.owner.Lock()
	defer s.owner.Unlock()
	held := 0
	for _, k := range s.soakers {
		k.gate.Lock()
		defer k.gate.Unlock()
	}
	now := s.told.last()
	var want []string
	within(s.t, patience, "every opener to hear of its routes' ends", func() bool {
		held, want = 0, []string{}
		for _, k := range s.soakers {
			if err := k.hear(); err != nil {
				s.t.Error(err)
			}
			for _, o := range k.routes {
				if !now.holds(o.attempt) {
					return false
				}
				want = append(want, o.as+" -> "+o.target)
				held++
			}
		}
		return true
	})
	slices.Sort(want)
	require.Equal(s.t, want, s.agree("at a checkpoint"), "the openers' routes are the index's")
	s.scopes(&now)
	f, err := s.footprint()
	require.NoError(s.t, err)
	require.Zero(s.t, f.totals.Pending)
	require.EqualValues(s.t, held, f.totals.Routes)
	m, err := s.gauges()
	require.NoError(s.t, err)
	s.samples = append(s.samples, sample{f, m["process_resident_memory_bytes"]})
}

// scopes compares the table's scopes with the model's, and each route with its
// scope.
func (s *soak) scopes(now *picture) {
	s.t.Helper()
	client := api.NewClient(s.socket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	scopes, err := client.Scopes(ctx, api.Filter{})
	require.NoError(s.t, err)
	live := map[string]uint64{}
	for _, sc := range scopes.Scopes {
		live[sc.Ref] = sc.ScopeEpoch
	}
	want := map[string]uint64{}
	for i := range now {
		if now[i].live {
			want[refName(i)] = now[i].epoch
		}
	}
	require.Equal(s.t, want, live)
	routes, err := client.Routes(ctx, api.Filter{})
	require.NoError(s.t, err)
	for _, r := range routes.Routes {
		require.True(s.t, r.Live, "%+v", r)
		require.Equal(s.t, live[r.Ref], r.ScopeEpoch, "a route outlives its scope: %+v", r)
	}
}

// report says what was played.
func (s *soak) report(length time.Duration) {
	sum := map[string]int{}
	for _, k := range s.soakers {
		for what, n := range k.counts {
			sum[what] += n
		}
	}
	s.t.Logf("%v, %d changes of the owner, %d restarts of providers, %d checkpoints, the table's invariants checked %d times",
		length, s.changes, s.calm.Load()/2, len(s.samples), s.looks.Load())
	require.Greater(s.t, s.looks.Load(), int64(length/lookEvery/4))
	for _, what := range slices.Sorted(maps.Keys(sum)) {
		s.t.Logf("%8d %s", sum[what], what)
	}
	require.LessOrEqual(s.t, sum[lost]*lostOf, sum["admitted"]+sum["plain"], lost)
	for _, what := range []string{"admitted", "drained", "scope_ended", "scope_not_live", "scope_not_carrier", "calls", "connections"} {
		require.NotZero(s.t, sum[what], "%s was never played", what)
	}
}

// flat compares the middles of the samples' third and last quarters: by then the
// change feed has as many events as it keeps.
func (s *soak) flat() {
	s.t.Helper()
	quarter := len(s.samples) / 4
	middle := func(of []sample, value func(sample) float64) float64 {
		var all []float64
		for _, one := range of {
			all = append(all, value(one))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for name, c := range map[string]struct {
		value func(sample) float64
		slack float64
	}{
		"descriptors":            {func(x sample) float64 { return float64(x.descriptors) }, slack},
		"the router's":           {func(x sample) float64 { return float64(x.routerDescriptors) }, slack},
		"goroutines":             {func(x sample) float64 { return float64(x.goroutines) }, 2 * slack},
		"resident memory, bytes": {func(x sample) float64 { return x.resident }, residentSlack},
	} {
		var of [4]float64
		for i := range of {
			of[i] = middle(s.samples[i*quarter:(i+1)*quarter], c.value)
		}
		s.t.Logf("%s, by quarters: %.0f", name, of)
		require.LessOrEqual(s.t, of[3], of[2]+c.slack, name)
	}
}
