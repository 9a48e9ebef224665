package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// healLimit is how long everything may take to be back after the sidecar was
// killed and started again.
const healLimit = 15 * time.Second

// TestBoot_RouterFirst: the router launches its modules a minute before any
// sidecar is there. They wait, and nobody gives them up.
func TestBoot_RouterFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	w.play(idOwner, syncStep(1, record("s", 1)))
	w.startRouter()
	var waiting int
	within(t, patience, "the echo module's launch", func() bool { waiting = w.pid(idEcho); return waiting != 0 })
	select {
	case <-w.router.done:
		require.Fail(t, "the router ended")
	case <-time.After(time.Minute):
	}
	require.Equal(t, waiting, w.pid(idEcho), "the same launch is still waiting")

	w.startSidecar()
	w.waitModules(healLimit)
	require.Equal(t, waiting, w.pid(idEcho), "the same launch registered")
	w.waitSynced(idOwner, 1)
	requireEcho(t, w)
}

// TestBoot_SidecarFirst: the sidecar waits for the router, and says so once.
func TestBoot_SidecarFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	w.play(idOwner, syncStep(1, record("s", 1)))
	w.launchSidecar()
	within(t, patience, "the sidecar's first line", func() bool { return len(w.sidecar.output()) > 0 })
	w.startRouter()
	w.waitDial(w.frontFile(), w.sidecar)
	w.waitModules(healLimit)
	w.waitSynced(idOwner, 1)
	requireEcho(t, w)
}

// TestHeal: the sidecar is killed and started again. Its modules' connections
// end, they exit, the router leaves them stopped; all of them come back untouched
// by hand.
func TestHeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	w.play(idOwner, syncStep(1, record("s", 1)))
	w.start()
	w.waitSynced(idOwner, 1)
	requireEcho(t, w)
	first := map[string]int{}
	for id := range w.modules {
		first[id] = w.pid(id)
	}

	w.sidecar.stop(syscall.SIGKILL, patience)
	killed := time.Now()
	w.startSidecar()
	within(t, healLimit-time.Since(killed), "a new launch of every module", func() bool {
		for id, pid := range first {
			if now := w.pid(id); now == 0 || now == pid {
				return false
			}
		}
		return true
	})
	w.waitModules(healLimit - time.Since(killed))
	w.waitSynced(idOwner, 2)
	requireEcho(t, w)
	require.Less(t, time.Since(killed), healLimit)
	t.Logf("everything is back after %v", time.Since(killed).Round(10*time.Millisecond))
}

// requireEcho asks the echo module through the sidecar, unscoped and scoped.
func requireEcho(t *testing.T, w *world) {
	t.Helper()
	client := w.client()
	for _, body := range []object{w.opening(idEcho), w.scoped(idEcho, "s", 1)} {
		answer := decode[object](t, client.call(client.mustOpen(body), object{"n": "1"}))
		require.Equal(t, object{"ok": true, "echo": object{"n": "1"}}, *answer)
	}
}
