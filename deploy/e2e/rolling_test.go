package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// rollingLimit is how long everything may take to be back after the first of
// two restarts.
const rollingLimit = 30 * time.Second

// idWitness carries a scope and is never restarted by itself: its route must die
// with its scope.
const idWitness = "witness"

// party is what a rolling restart restarts.
type party string

const (
	partyOwner    party = idOwner
	partyCarrier  party = idCarrier
	partyProvider party = idOld
	partyRouter   party = "router"
	partySidecar  party = "sidecar"
)

// rolling is one restart of one party right behind another's.
type rolling struct {
	first, second party
	kill          bool // kill -9, else as an operator would
}

func (r rolling) String() string {
	how := "gracefully"
	if r.kill {
		how = "kill -9"
	}
	return fmt.Sprintf("%s, %s, %s", r.first, r.second, how)
}

// rollings are all ordered pairs, both ways, or a sample of them by
// SCOPEWARD_E2E_ROLLING (a number, or "all") and SCOPEWARD_E2E_SEED.
func rollings(t *testing.T) []rolling {
	t.Helper()
	parties := []party{partyOwner, partyCarrier, partyProvider, partyRouter, partySidecar}
	var all []rolling
	for _, first := range parties {
		for _, second := range parties {
			if first != second {
				all = append(all, rolling{first, second, true}, rolling{first, second, false})
			}
		}
	}
	size, seed := 8, uint64(1)
	switch v := os.Getenv("SCOPEWARD_E2E_ROLLING"); v {
	case "":
	case "all":
		return all
	default:
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "SCOPEWARD_E2E_ROLLING is a number or \"all\"")
		size = min(n, len(all))
	}
	if v := os.Getenv("SCOPEWARD_E2E_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "SCOPEWARD_E2E_SEED is a number")
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:size]
}

// TestRollingRestart restarts one party right behind another, with modules that
// exit when their connection ends. Everything is back in time without help, no
// owner is locked out, and a route whose scope is gone answers no call.
func TestRollingRestart(t *testing.T) {
	programs(t)
	for _, r := range rollings(t) {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			playRolling(t, r)
		})
	}
}

// playRolling plays one of them in a world of its own.
func playRolling(t *testing.T, r rolling) {
	w := newWorld(t, map[string]module{
		idOwner:   {program: progOwner},
		idCarrier: {program: progCarrier},
		idOld:     {program: progOldModule},
		idWitness: {program: progCarrier},
	})
	live, gone := record("s", 1), record("gone", 1)
	gone["carriers"] = append(gone["carriers"].([]object), object{"principal": reserved(idWitness)})
	w.play(idOwner, syncStep(1, live, gone))
	w.start()
	w.waitSynced(idOwner, 1)
	for id, ref := range map[string]string{idCarrier: "s", idWitness: "gone"} {
		opener := w.carry(id)
		requireOK(t, opener.open(ref, idOld, selector(ref, 1)))
		requireOK(t, opener.call(ref, object{"n": "1"}))
	}

	// From here on every sync leaves one of the two scopes out.
	w.play(idOwner, syncStep(1, live))
	began := time.Now()
	w.restartParty(r.first, r.kill)
	w.restartParty(r.second, r.kill)
	var last error
	defer func() {
		if t.Failed() {
			t.Logf("last seen: %v", last)
		}
	}()
	within(t, rollingLimit-time.Since(began), "everything to be back", func() bool {
		last = w.scopedEcho()
		return last == nil && w.registered()
	})
	recovered := time.Since(began)
	t.Logf("back after %v", recovered.Round(10*time.Millisecond))

	if synced := w.syncs(); synced == 1 {
		w.restart(idOwner)
		w.waitSynced(idOwner, 2)
	}
	for _, s := range w.saw(idOwner) {
		require.Nil(t, s.Result["refused"], "an owner was locked out")
	}
	require.Greater(t, w.syncs(), 1)
	witness := w.carry(idWitness)
	require.Nil(t, witness.call("gone", object{"n": "2"}).OK, "a call was answered on a revoked route")
	requireRefused(t, "scope_not_live", witness.open("gone", idOld, selector("gone", 1)))
	after := w.carry(idCarrier)
	requireOK(t, after.open("s", idOld, selector("s", 1)))
	requireOK(t, after.call("s", object{"n": "3"}))
}

// syncs is how many of the owner's launches ran their steps.
func (w *world) syncs() int {
	n := 0
	for _, s := range w.saw(idOwner) {
		if s.Done {
			n++
		}
	}
	return n
}

// restartParty ends p and, where the router's supervisor does not, starts it
// again. It waits for nothing but p's own process.
func (w *world) restartParty(p party, kill bool) {
	w.t.Helper()
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	switch p {
	case partyRouter:
		w.router.stop(sig, patience)
		os.Remove(w.routerFile())
		w.launchRouter()
	case partySidecar:
		w.sidecar.stop(sig, patience)
		w.launchSidecar()
	default:
		w.restartModule(string(p), kill)
	}
}

// restartModule restarts a module as soon as the router has one to restart.
func (w *world) restartModule(id string, kill bool) {
	w.t.Helper()
	within(w.t, rollingLimit, "a running "+id, func() bool {
		conn, err := dialFile(w.routerFile())
		if err != nil {
			return false
		}
		defer conn.Close()
		if kill {
			pid := w.livePID(conn, id)
			return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
		}
		f, err := exchange(conn, wire.Header{Corr: 1}, wire.MustMarshal(object{"op": wire.OpSupervisorRestart, "module_id": id}))
		return err == nil && f.Type == wire.Response
	})
}

// scopedEcho asks the carrier for one scoped open and one call, on connections
// of their own.
func (w *world) scopedEcho() error {
	conn, err := dialFile(w.frontFile())
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := exchange(conn, wire.Header{Corr: 1}, wire.MustMarshal(w.opening(idCarrier)))
	if err != nil {
		return err
	}
	var r route
	if f.Type != wire.Response || json.Unmarshal(f.Body, &r) != nil {
		return fmt.Errorf("open to the carrier: %s", f.Body)
	}
	for i, body := range []object{
		{"kind": "open", "route": "echo", "target": idOld, "identity": w.identity(), "scope": selector("s", 1)},
		{"kind": "call", "route": "echo", "body": object{"n": "9"}},
	} {
		h := wire.Header{Channel: r.Channel, Epoch: r.Epoch, Corr: uint64(i + 2)}
		if f, err = exchange(conn, h, wire.MustMarshal(body)); err != nil {
			return err
		}
		var s said
		if f.Type != wire.Response || json.Unmarshal(f.Body, &s) != nil || s.OK == nil {
			return fmt.Errorf("%s: %s", body["kind"], f.Body)
		}
	}
	return nil
}
