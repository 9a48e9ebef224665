package e2e

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const (
	idBare         = "bare" // an echo module on the router itself
	neighbourCalls = 250    // in each turn
	neighbourPause = 100 * time.Millisecond
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
		q, p := beside(tr, near, ours, name, tr.frontFile(), turns)
		bq, bp := beside(tr, bare, theirs, name, tr.routerFile(), turns)
		resident := tr.resident()
		t.Logf("%-22s p99 quiet %6d us, beside %6d us, %5.1f times; bare %6d us, %6d us, %5.1f times; %3.0f MiB resident", name,
			q.Microseconds(), p.Microseconds(), float64(p)/float64(q), bq.Microseconds(), bp.Microseconds(), float64(bp)/float64(bq), resident/(1<<20))
		require.Less(t, p, neighbourLimit, name)
		require.Less(t, resident, float64(floodedBytes), name)
	}
}

// beside is the p99 of calls on r, quiet and beside a flood of what file leads to.
func beside(tr *troupe, l *link, r *route, name, file string, turns int) (quiet, loud time.Duration) {
	tr.t.Helper()
	program, err := os.Executable()
	require.NoError(tr.t, err)
	c := exec.Command("nice", "-n", "19", program)
	c.Env = append(tr.env(), envFlood+"="+name, envFloodFile+"="+file)
	c.Stderr = os.Stderr
	end, err := c.StdinPipe()
	require.NoError(tr.t, err)
	require.NoError(tr.t, c.Start())
	defer func() {
		_ = c.Process.Signal(syscall.SIGCONT)
		_ = end.(io.Closer).Close()
		_ = c.Wait()
	}()
	calls := func(n int) []time.Duration {
		took := make([]time.Duration, n)
		for i := range took {
			began := time.Now()
			require.Equal(tr.t, wire.Response, l.call(r, object{"n": "1"}).Type)
			took[i] = time.Since(began)
		}
		return took
	}
	var still, busy []time.Duration
	for range turns {
		require.NoError(tr.t, c.Process.Signal(syscall.SIGSTOP))
		<-time.After(neighbourPause) // what is under way comes to rest
		calls(20)
		still = append(still, calls(neighbourCalls)...)
		require.NoError(tr.t, c.Process.Signal(syscall.SIGCONT))
		<-time.After(neighbourPause)
		busy = append(busy, calls(neighbourCalls)...)
	}
	p99 := func(d []time.Duration) time.Duration {
		slices.Sort(d)
		return d[len(d)*99/100]
	}
	return p99(still), p99(busy)
}
