package e2e

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const (
	idBare         = "bare" // an echo module on the router itself
	neighbourCalls = 250    // in each turn
	neighbourPause = 200 * time.Millisecond
	neighbourLimit = time.Second // for the slowest call but one in a hundred
	floodedBytes   = 256 << 20   // of resident memory, beside and after every flood
)

// TestNeighbour: a well-behaved opener's calls to the SDK's module are answered
// beside each hostile peer. It says what they take, quiet and beside it, by turns
// in one run; opener, sidecar, router, module and hostile peer are processes of
// their own, the last at nice 19. "bare" is the same on the router itself: what
// the flood costs a neighbour without us. SCOPEWARD_E2E_NEIGHBOUR is how many
// turns are measured, on a machine that does nothing else.
func TestNeighbour(t *testing.T) {
	turns := 1
	if v := os.Getenv("SCOPEWARD_E2E_NEIGHBOUR"); v != "" {
		var err error
		turns, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	tr := newTroupe(t, func(w *world) {
		w.modules[idEcho] = module{program: progEcho}
		w.modules[idBare] = module{program: progEcho, direct: true}
		w.configure()
	})
	tr.waitModules(patience)
	tr.sync(record("s", 1))
	near, bare := tr.client(), tr.admin()
	ours, theirs := near.mustOpen(tr.scoped(idEcho, "s", 1)), bare.mustOpen(tr.opening(idBare))
	for _, name := range slices.Sorted(maps.Keys(floods)) {
		t.Run(name, func(t *testing.T) {
			q, p := beside(tr, near, ours, name, tr.frontFile(), turns)
			bq, bp := beside(tr, bare, theirs, name, tr.routerFile(), turns)
			resident := tr.resident()
			t.Logf("p99 quiet %6d us, beside %6d us, %5.1f times; bare %6d us, %6d us, %5.1f times; %3.0f MiB resident",
				q.Microseconds(), p.Microseconds(), float64(p)/float64(q), bq.Microseconds(), bp.Microseconds(), float64(bp)/float64(bq), resident/(1<<20))
			require.Less(t, p, neighbourLimit)
			require.Less(t, resident, float64(floodedBytes))
		})
	}
}

// beside is the p99 of calls on r, quiet and beside a flood of what file leads to.
// Each turn has a flooder of its own, and begins once what the last one left
// behind is done.
func beside(tr *troupe, l *link, r *route, name, file string, turns int) (quiet, loud time.Duration) {
	tr.t.Helper()
	var still, busy []time.Duration
	for range turns {
		still = calls(l, r, still)
		stop := tr.flooded(name, file)
		for began := time.Now(); time.Since(began) < neighbourPause; {
			calls(l, r, nil) // the neighbour was there before
		}
		busy = calls(l, r, busy)
		stop()
		calls(l, r, nil)
		<-time.After(neighbourPause)
	}
	p99 := func(d []time.Duration) time.Duration {
		slices.Sort(d)
		return d[len(d)*99/100]
	}
	return p99(still), p99(busy)
}

// calls makes calls on r and adds what each took.
func calls(l *link, r *route, took []time.Duration) []time.Duration {
	l.t.Helper()
	for range neighbourCalls {
		began := time.Now()
		require.Equal(l.t, wire.Response, l.call(r, object{"n": "1"}).Type)
		took = append(took, time.Since(began))
	}
	return took
}

// flooded starts a flooder, in a process of its own that gives way to others.
func (tr *troupe) flooded(name, file string) (stop func()) {
	tr.t.Helper()
	program, err := os.Executable()
	require.NoError(tr.t, err)
	c := exec.Command("nice", "-n", "19", program)
	c.Env = append(tr.env(), envFlood+"="+name, envFloodFile+"="+file)
	c.Stderr = os.Stderr
	end, err := c.StdinPipe()
	require.NoError(tr.t, err)
	require.NoError(tr.t, c.Start())
	return func() {
		_ = end.Close()
		_ = c.Wait()
	}
}
