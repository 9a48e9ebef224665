package launch

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
)

// A module is put behind the sidecar by a swap: its incumbent is registered
// straight at the router, and only the candidate comes through us.
const forever = 1 << 20

func elsewhere(r *rig, id string, times int) {
	r.router.set(func() { r.router.elsewhere[id] = times })
}

func TestS3_ACandidateWhoseIncumbentIsNotBehindUsIsRefusedBeforeCutover(t *testing.T) {
	for _, mode := range []config.AttributionMode{config.AttributionOff, config.AttributionObserve, config.AttributionEnforce} {
		t.Run(string(mode), func(t *testing.T) {
			bubble(t, mode, func(r *rig) {
				r.router.set(func() { r.router.roster = []string{"m"} })
				r.processes.fork(100, routerPID)
				r.router.spawn("m", 1, 100)
				r.router.knows("m", "old", "new")
				elsewhere(r, "m", forever)
				r.connect(2, r.processes.fork(200, routerPID))
				synctest.Wait()
				require.Zero(r.t, r.hello(2, "m", "new"))
				r.Registered(2, "m", "new")
				require.False(r.t, r.standing(2).Current)
				require.False(r.t, r.standing(2).Current, "throughout")

				r.router.spawn("m", 2, 200) // cutover
				require.True(r.t, r.standing(2).Current)
				r.router.exit("m", 1, 100)
				synctest.Wait()
				require.Empty(r.t, r.cutConns())
				require.Empty(r.t, r.reported())
				require.True(r.t, r.standing(2).Current)
			})
		})
	}
}

// It may be judged only when it has been promoted already.
func TestS3_ACandidateJudgedAfterCutoverIsCurrentThoughItsIncumbentIsNotBehindUs(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "old", "new")
		elsewhere(r, "m", forever)
		r.connect(2, Process{})
		synctest.Wait()
		require.Zero(r.t, r.hello(2, "m", "new"))
		r.router.spawn("m", 2, 200)
		r.Registered(2, "m", "new")
		require.True(r.t, r.standing(2).Current)
	})
}

// The router may not have seen the end of a connection whose module is back
// already.
func TestAModuleThatIsBackAtOnceIsNoCandidate(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		elsewhere(r, "m", besideTries-1)
		r.connect(1, Process{})
		r.connect(2, Process{})
		synctest.Wait()
		require.Zero(r.t, r.hello(1, "m", "right"))
		r.Registered(1, "m", "right")
		require.True(r.t, r.standing(1).Current)
		r.Unregistered(1)

		// One whose nonce was the launch's before is the launch's, however long that takes.
		elsewhere(r, "m", forever)
		require.Zero(r.t, r.hello(2, "m", "right"))
		r.Registered(2, "m", "right")
		require.True(r.t, r.standing(2).Current)
	})
}

func TestEnforce_ACandidateNeedsAnIncumbentSomewhere(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		h.connect(2, h.processes.fork(200, routerPID))
		h.router.knows("m", "new")
		require.Equal(h.t, wire.CodeReservedModule, h.hello(2, "m", "new").Code)
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(2, "m", "new").Code)
		elsewhere(h.rig, "m", forever)
		require.Zero(h.t, h.identity(2, "m", "new"), "a client connection may come first")
		require.Zero(h.t, h.hello(2, "m", "new"))
		require.Equal(h.t, wire.CodeReservedModule, h.hello(6, "m", "new").Code, "a stranger is none")
	})
}

func TestWhatAHelloCameBesideIsForgottenWithItsConnection(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		elsewhere(r, "m", forever)
		r.connect(2, Process{})
		synctest.Wait()
		r.hello(2, "m", "new")
		s := r.current()
		require.Len(r.t, s.beside, 1)
		r.Closed(2)
		require.Empty(r.t, s.beside)
		r.hello(2, "m", "new")
		require.Empty(r.t, s.beside, "the router was asked for longer than that")
	})
}
