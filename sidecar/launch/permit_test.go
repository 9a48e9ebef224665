package launch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
)

// theft is a router with one launched module, m, whose process is real, and a
// thief of the same user outside the router's tree.
type theft struct {
	*rig
	real, thief Process
}

func guarded(t *testing.T, mode config.AttributionMode, test func(*theft), change ...func(*Params, *Link)) {
	t.Helper()
	bubble(t, mode, func(r *rig) {
		h := &theft{rig: r, real: r.processes.fork(100, routerPID), thief: r.processes.fork(666, 1)}
		r.router.set(func() { r.router.roster = []string{"m"} })
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.connect(1, h.real)
		r.connect(6, h.thief)
		test(h)
	}, change...)
}

func exact(p *Params, _ *Link) { p.Match = config.MatchExact }

func TestEnforce_TheLaunchItselfPasses(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Zero(h.t, h.hello(1, "m", "right"))
		require.Zero(h.t, h.identity(1, "m", "right"))
		h.Registered(1, "m", "right")
		require.True(h.t, h.standing(1).Current)
		require.Empty(h.t, h.reported())
	})
}

func TestEnforce_AHelloOfAnyOtherProcessIsReservedModule(t *testing.T) {
	for name, nonce := range map[string]string{"stolen nonce": "right", "wrong nonce": "wrong", "no nonce": ""} {
		t.Run(name, func(t *testing.T) {
			guarded(t, config.AttributionEnforce, func(h *theft) {
				a := h.hello(6, "m", nonce)
				require.Equal(h.t, wire.CodeReservedModule, a.Code)
				require.Contains(h.t, a.Message, "pid 666", "the PID is named")
				if nonce != "" {
					require.Contains(h.t, a.Message, "pid 100", "and the launch's")
				}
				if nonce != "" {
					require.NotContains(h.t, a.Message, nonce, "the nonce is not")
				}
				require.Len(h.t, h.reported(), 1)
				require.True(h.t, h.reported()[0].Refused)
				require.Zero(h.t, h.hello(1, "m", "right"), "the real module works on")
			})
		})
	}
}

func TestEnforce_TheRightProcessNeedsTheRightNonceForAHello(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Equal(h.t, wire.CodeReservedModule, h.hello(1, "m", "").Code)
		require.Equal(h.t, wire.CodeReservedModule, h.hello(1, "m", "wrong").Code)
	})
}

// Each wrong nonce costs the router a line in its log.
func TestEnforce_AWrongNonceIsAskedOnceForAConnection(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		for range 5 {
			require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(1, "m", "wrong").Code)
			require.Equal(h.t, wire.CodeReservedModule, h.hello(1, "m", "wrong").Code)
		}
		require.Equal(h.t, 1, h.router.probes)
		require.Zero(h.t, h.identity(1, "m", "right"))
		h.Closed(1)
		require.Empty(h.t, h.current().foreign, "it goes with its connection")
	})
}

func TestEnforce_AnIdOutsideTheRosterIsNobodys(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Zero(h.t, h.hello(6, "free", ""))
		require.Empty(h.t, h.reported())
	})
}

func TestEnforce_AnIdentityOfAnyOtherProcessIsRefusedBeforeTheRouterSeesIt(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		a := h.identity(6, "m", "right")
		require.Equal(h.t, wire.CodeBadConsumerIdentity, a.Code)
		require.NotContains(h.t, a.Message, "right")
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(6, "m", "wrong").Code)
		require.Zero(h.t, h.router.probes, "a stranger's nonce is not even probed")

		other := h.processes.fork(101, routerPID)
		h.router.spawn("other", 1, 101)
		h.connect(2, other)
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(2, "m", "right").Code, "a launch of another module")
	})
}

func TestEnforce_UnknownIsNobody(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		h.connect(9, Process{Reason: "the map was full"})
		a := h.hello(9, "m", "right")
		require.Equal(h.t, wire.CodeReservedModule, a.Code)
		require.Contains(h.t, a.Message, "the map was full")
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(9, "m", "right").Code)
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(77, "m", "right").Code, "never attributed at all")
	})
}

func TestEnforce_ARecycledPidIsAnotherProcess(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Zero(h.t, h.hello(1, "m", "right"))
		again := h.processes.fork(100, 1) // the same PID, started later
		h.connect(2, again)
		require.Equal(h.t, wire.CodeReservedModule, h.hello(2, "m", "right").Code)
	})
}

func TestMatchTreeTakesDescendantsAndExactDoesNot(t *testing.T) {
	child := func(h *theft) {
		h.processes.fork(110, 100)
		h.connect(3, h.processes.fork(111, 110))
	}
	guarded(t, config.AttributionEnforce, func(h *theft) {
		child(h)
		require.Zero(h.t, h.hello(3, "m", "right"))
		require.Zero(h.t, h.identity(3, "m", "right"))
	})
	guarded(t, config.AttributionEnforce, func(h *theft) {
		child(h)
		require.Equal(h.t, wire.CodeReservedModule, h.hello(3, "m", "right").Code)
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(3, "m", "right").Code)
	}, exact)
}

func TestAProcessYoungerThanOurNewsOfItIsLookedUp(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		synctest.Wait()
		h.router.set(func() { h.router.subs = nil })
		h.router.exit("m", 1, 100)
		h.connect(2, h.processes.fork(200, routerPID))
		h.router.spawn("m", 2, 200)
		h.router.knows("m", "fresh")
		require.Zero(h.t, h.hello(2, "m", "fresh"))
	})
}

func TestObserve_TheftIsReportedAndPasses(t *testing.T) {
	guarded(t, config.AttributionObserve, func(h *theft) {
		require.Zero(h.t, h.hello(6, "m", "right"))
		require.Zero(h.t, h.identity(6, "m", "right"))
		synctest.Wait()
		got := h.reported()
		require.Len(h.t, got, 2)
		for _, m := range got {
			require.False(h.t, m.Refused)
			require.Equal(h.t, h.thief, m.Process)
			require.Equal(h.t, "m", m.ModuleID)
		}
	})
}

func TestOff_NothingIsLookedAt(t *testing.T) {
	guarded(t, config.AttributionOff, func(h *theft) {
		require.Zero(h.t, h.hello(6, "m", "right"))
		require.Zero(h.t, h.identity(6, "m", "right"))
		synctest.Wait()
		require.Empty(h.t, h.reported())
		require.Zero(h.t, h.router.lists+h.router.probes)
	})
}

// A candidate is in no feed before cutover.
func swapping(h *theft) (candidate Process) {
	require.Zero(h.t, h.hello(1, "m", "right"))
	h.Registered(1, "m", "right")
	candidate = h.processes.fork(200, routerPID)
	h.connect(2, candidate)
	h.router.knows("m", "new")
	return candidate
}

func TestEnforce_ASwapsCandidatePassesWhileAnotherHelloOfItsIdIsLive(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		swapping(h)
		require.Zero(h.t, h.hello(2, "m", "new"))
		h.Registered(2, "m", "new")
		require.False(h.t, h.standing(2).Current)
		require.Zero(h.t, h.identity(2, "m", "new"), "its client connections too")
		h.router.spawn("m", 2, 200)
		require.True(h.t, h.standing(2).Current)
		require.False(h.t, h.standing(1).Current)
		require.Zero(h.t, h.identity(1, "m", "right"), "the incumbent drains in peace")
		require.Empty(h.t, h.reported())
	})
}

func TestEnforce_ACandidateIsAChildOfTheRouterAndNoOtherLaunch(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		swapping(h)
		require.Equal(h.t, wire.CodeReservedModule, h.hello(6, "m", "new").Code, "a stranger with the candidate's nonce")

		other := h.processes.fork(101, routerPID)
		h.router.spawn("other", 1, 101)
		h.connect(3, other)
		require.Equal(h.t, wire.CodeReservedModule, h.hello(3, "m", "new").Code, "another module's launch")

		grandchild := h.processes.fork(102, 101)
		h.connect(4, grandchild)
		require.Equal(h.t, wire.CodeReservedModule, h.hello(4, "m", "new").Code, "no direct child")
	})
}

func TestEnforce_NoCandidateWithoutAnIncumbent(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		h.connect(2, h.processes.fork(200, routerPID))
		h.router.knows("m", "new")
		require.Equal(h.t, wire.CodeReservedModule, h.hello(2, "m", "new").Code)
	})
}

func TestEnforce_AFalseCandidateIsCutAtCutover(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		swapping(h)
		require.Zero(h.t, h.hello(2, "m", "new"))
		h.Registered(2, "m", "new")
		h.processes.fork(300, routerPID)
		h.router.spawn("m", 2, 300) // the router's candidate was another process
		synctest.Wait()
		require.Equal(h.t, []proxy.ConnID{2}, h.cutConns())
		require.Len(h.t, h.reported(), 1)
	})
}

func TestEnforce_ARolledBackCandidateAccusesNobodyLater(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		swapping(h)
		require.Zero(h.t, h.hello(2, "m", "new"))
		h.processes.mu.Lock()
		delete(h.processes.running, 200)
		h.processes.mu.Unlock()
		h.processes.fork(300, routerPID)
		h.router.exit("m", 1, 100)
		h.router.spawn("m", 2, 300)
		synctest.Wait()
		require.Empty(h.t, h.reported())
	})
}

func TestEnforce_TheFirstVerifiedUsePinsANonce(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		swapping(h)
		require.Zero(h.t, h.hello(2, "m", "new"))
		require.Equal(h.t, wire.CodeReservedModule, h.hello(2, "m", "right").Code, "the incumbent's nonce is its own")
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(1, "m", "new").Code, "and the candidate's")
	})
}

func TestADeadProcessTakesItsConnectionsAlong(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Zero(h.t, h.hello(1, "m", "right"))
		h.Registered(1, "m", "right")
		h.connect(2, h.real) // a client connection of the same process
		h.connect(3, h.processes.fork(110, 100))
		synctest.Wait()
		h.router.exit("m", 1, 100)
		synctest.Wait()
		require.Subset(h.t, []proxy.ConnID{1, 2}, h.cutConns())
		require.Contains(h.t, h.cutConns(), proxy.ConnID(2))
		require.NotContains(h.t, h.cutConns(), proxy.ConnID(3), "a child's connection is the child's")
	})
}

func TestEnforce_ARouterThatDoesNotTellIsNotAReasonToRefuseTheRightProcess(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		h.router.set(func() { h.router.unknown = 1 << 20 })
		require.Zero(h.t, h.identity(1, "m", "right"))
		require.Zero(h.t, h.hello(1, "m", "right"))
	})
}

func TestWithoutAFeedWhoDescendsFromTheRouterPasses(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Zero(h.t, h.hello(1, "m", "right"))
		require.Equal(h.t, wire.CodeReservedModule, h.hello(6, "m", "right").Code)
	}, withoutFeed)
}

func TestAQuestionUnderWayEndsWithTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, config.AttributionOff)
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.router.set(func() { r.router.unknown = 1 << 20 })
		r.Registered(1, "m", "right")
		answered := make(chan proxy.Answer, 1)
		r.Ask(proxy.Question{Kind: proxy.AskStanding, Conn: 1}, func(a proxy.Answer) { answered <- a })
		<-time.After(50 * time.Millisecond)
		r.Detach()
		require.False(t, (<-answered).Current)
	})
}

// A launch's own process, verified once, is answered on the spot: its opens wait
// for nobody.
func TestAVerifiedProcessIsAnsweredAtOnce(t *testing.T) {
	guarded(t, config.AttributionEnforce, func(h *theft) {
		require.Zero(h.t, h.identity(1, "m", "right"))
		answered := false
		h.Ask(proxy.Question{Kind: proxy.AskIdentity, Conn: 1, ModuleID: "m", Nonce: "right"}, func(a proxy.Answer) {
			answered = a == proxy.Answer{}
		})
		require.True(h.t, answered)
		require.Equal(h.t, 1, h.router.probes)
		h.router.exit("m", 1, 100)
		synctest.Wait()
		require.Equal(h.t, wire.CodeBadConsumerIdentity, h.identity(1, "m", "right").Code, "it ends with the launch")
	})
}
