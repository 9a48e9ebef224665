package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const (
	idlers       = 10_000
	idlersAtOnce = 16
	idleBytes    = 24 << 10 // of resident memory, for each
	lowSoftLimit = 256      // descriptors
	idleCalls    = 2000
)

// TestIdleConnections: ten thousand openers that say nothing after their
// handshake, each of which costs the sidecar two descriptors. It was started with
// a soft limit that is far too low: it takes what the hard one allows. Opener,
// sidecar and router are processes of their own.
func TestIdleConnections(t *testing.T) {
	tr := newTroupe(t)
	require.True(t, tr.sidecar.stop(syscall.SIGTERM, patience))
	tr.parted()
	tr.sidecar = startProcess(t, "sidecar", tr.dir, tr.env(), "/bin/sh", "-c", fmt.Sprintf(`ulimit -Sn %d; exec "$@"`, lowSoftLimit),
		"sh", scopeward(t), "run", "--config", tr.path("side/config.jsonc"))
	tr.gather(backLimit)
	tr.sync(record("s", 1))
	r := tr.mustOpen("s")
	before := tr.mustFootprint()
	resident := tr.resident()
	quiet := tr.p99(r)

	soft, hard := openFiles(t, tr.sidecar.cmd.Process.Pid)
	require.GreaterOrEqual(t, soft, hard-1, "the soft limit is raised")
	n := min(idlers, (hard-before.descriptors-64)/2)
	idle := tr.idle(n)
	after := tr.mustFootprint()
	require.LessOrEqual(t, after.descriptors, before.descriptors+2*n+slack)
	each := int(tr.resident()-resident) / n
	t.Logf("%d idle connections, as many as %d descriptors allow: %d bytes of the sidecar's resident memory each, %d goroutines, then %d",
		n, hard, each, before.goroutines, after.goroutines)
	require.Less(t, each, idleBytes)
	t.Logf("a neighbour's calls: p99 %v, beside them %v", quiet, tr.p99(r))
	tr.mustOpen("s")

	for _, c := range idle {
		c.Close()
	}
	before.totals.Routes++
	tr.returned(before)
}

// idle makes n connections that have said nothing since their handshake.
func (tr *troupe) idle(n int) []net.Conn {
	tr.t.Helper()
	list := make([]net.Conn, n)
	errs := make([]error, n)
	next := make(chan int)
	var dialing sync.WaitGroup
	for range idlersAtOnce {
		dialing.Go(func() {
			for i := range next {
				// One that finds every place for a handshake taken comes again.
				for range 100 {
					if list[i], errs[i] = dialFile(tr.frontFile()); errs[i] == nil {
						break
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	dialing.Wait()
	for _, err := range errs {
		require.NoError(tr.t, err)
	}
	tr.t.Cleanup(func() {
		for _, c := range list {
			c.Close()
		}
	})
	return list
}

// p99 is what the slowest in a hundred of the opener's calls takes.
func (tr *troupe) p99(r *route) time.Duration {
	tr.t.Helper()
	took := make([]time.Duration, idleCalls)
	for i := range took {
		began := time.Now()
		require.Equal(tr.t, wire.Response, tr.opener.call(r, object{"n": "1"}).Type)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// resident is the sidecar's resident memory, bytes.
func (w *world) resident() float64 {
	w.t.Helper()
	m, err := w.gauges()
	require.NoError(w.t, err)
	return m["process_resident_memory_bytes"]
}

// openFiles are a process's limits of descriptors.
func openFiles(t *testing.T, pid int) (soft, hard int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	require.NoError(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Max open files"); ok {
			_, err := fmt.Sscan(rest, &soft, &hard)
			require.NoError(t, err)
		}
	}
	return soft, hard
}
