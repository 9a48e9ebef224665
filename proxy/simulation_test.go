package proxy

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// simSeeds is how many seeds the simulation plays, and the first of them:
// SCOPEWARD_SIM_SEEDS and SCOPEWARD_SIM_FIRST say so, the second alone replays a
// seed that failed.
func simSeeds(t *testing.T) (first, n uint64) {
	n = 300
	read := func(name string, v *uint64) bool {
		text := os.Getenv(name)
		if text == "" {
			return false
		}
		x, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, name)
		*v = x
		return true
	}
	if read("SCOPEWARD_SIM_FIRST", &first) {
		n = 1
	}
	read("SCOPEWARD_SIM_SEEDS", &n)
	return first, n
}

// play plays one seed in a bubble of its own: its clock begins where every
// seed's does.
func play(t *testing.T, seed uint64) *sim {
	var s *sim
	synctest.Test(t, func(*testing.T) {
		s = newSim(seed)
		s.run()
	})
	return s
}

// TestSimulation plays seeds and holds every law of a scoped route against each.
func TestSimulation(t *testing.T) {
	first, n := simSeeds(t)
	var committed, stale, drained, steps int
	for seed := first; seed < first+n; seed++ {
		s := play(t, seed)
		if s.broken != "" {
			require.Fail(t, s.broken, "SCOPEWARD_SIM_FIRST=%d go test -run TestSimulation$ ./proxy\n%s", seed, strings.Join(s.trace, "\n"))
		}
		committed, stale, drained, steps = committed+s.committed, stale+s.stale, drained+s.drained, steps+s.steps
	}
	t.Logf("%d seeds, %d steps: %d routes committed, %d acks stale, %d routes drained", n, steps, committed, stale, drained)
	if n >= 100 {
		require.Greater(t, committed, int(n), "it opens too little to show anything")
		require.NotZero(t, stale)
		require.Greater(t, drained, int(n)/4)
	}
}

// TestSimulationReplays: the same seed is the same run, to the last byte.
func TestSimulationReplays(t *testing.T) {
	for seed := range uint64(5) {
		a, b := play(t, seed), play(t, seed)
		require.Equal(t, a.digest, b.digest, "seed %d", seed)
	}
}
