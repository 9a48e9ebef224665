package launch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/sidecar/config"
	"scopeward/sidecar/router"
)

// bubble runs a test with a table in front of a fake router, in fake time.
func bubble(t *testing.T, mode config.AttributionMode, test func(*rig), change ...func(*Params, *Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mode, change...)
		defer r.Detach()
		test(r)
	})
}

func withoutFeed(_ *Params, l *Link) { l.Subscribe = nil }

func TestS11_OnlyTheSupervisorsRecordedSpawnNonceStands(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.Registered(1, "m", "right")
		a := r.standing(1)
		require.True(r.t, a.Current)
		require.NotZero(r.t, a.Launch)

		r.Unregistered(1)
		r.Registered(2, "m", "wrong")
		require.False(r.t, r.standing(2).Current)
		r.Unregistered(2)
		r.Registered(3, "m", "")
		require.False(r.t, r.standing(3).Current)
		r.Unregistered(3)
		r.Registered(4, "spawned by nobody", "right")
		require.False(r.t, r.standing(4).Current)
		require.False(r.t, r.standing(99).Current, "no registration at all")
	})
}

func TestS11_CandidateIsRefusedBeforeCutoverAndTheIncumbentAfterIt(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "old", "new")
		r.Registered(1, "m", "old")
		r.Registered(2, "m", "new")
		old := r.standing(1)
		require.True(r.t, old.Current)
		require.False(r.t, r.standing(2).Current)
		require.True(r.t, r.standing(1).Current, "throughout")

		r.router.spawn("m", 2, 200) // cutover
		promoted := r.standing(2)
		require.True(r.t, promoted.Current)
		require.NotEqual(r.t, old.Launch, promoted.Launch)
		require.False(r.t, r.standing(1).Current)

		r.router.exit("m", 1, 100)
		synctest.Wait()
		require.Equal(r.t, []proxy.ConnID{1}, r.cutConns())
		require.True(r.t, r.standing(2).Current)
	})
}

// The feed may lag behind the connection that asks: a snapshot is asked then.
func TestS11_CutoverIsSeenBeforeItsEventArrives(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "old", "new")
		r.Registered(1, "m", "old")
		r.Registered(2, "m", "new")
		require.False(r.t, r.standing(2).Current)
		synctest.Wait()
		r.router.set(func() { r.router.subs = nil }) // events go nowhere from here on
		r.router.spawn("m", 2, 200)
		require.False(r.t, r.standing(1).Current)
		require.True(r.t, r.standing(2).Current)
	})
}

// A verdict on the candidate may come after cutover.
func TestS11_ACandidateJudgedAfterCutoverIsTheNewLaunch(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "old", "new")
		r.Registered(1, "m", "old")
		require.True(r.t, r.standing(1).Current)
		r.router.set(func() { r.router.takes = time.Second })
		r.Registered(2, "m", "new")
		synctest.Wait()
		r.router.spawn("m", 2, 200)
		require.True(r.t, r.standing(2).Current)
		require.False(r.t, r.standing(1).Current)
	})
}

// The router dismisses the incumbent at cutover; the candidate may be judged
// after that. The generation it was born beside is not its own.
func TestS11_ACandidateJudgedAfterItsIncumbentIsGoneIsTheNewLaunch(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "old", "new")
		r.Registered(1, "m", "old")
		require.True(r.t, r.standing(1).Current)
		r.router.set(func() { r.router.takes = time.Second })
		r.Registered(2, "m", "new")
		synctest.Wait()
		r.Unregistered(1)
		require.False(r.t, r.standing(2).Current)
		r.router.spawn("m", 2, 200)
		require.True(r.t, r.standing(2).Current)
	})
}

func TestAHelloWithAWrongNonceTakesNobodysPlace(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.Registered(1, "m", "wrong")
		r.Registered(2, "m", "")
		r.Registered(3, "m", "right")
		require.True(r.t, r.standing(3).Current)
		require.False(r.t, r.standing(1).Current)
		require.False(r.t, r.standing(2).Current)
	})
}

func TestS3_ACandidateThatIsRolledBackNeverHadAuthority(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "old", "new", "third")
		r.Registered(1, "m", "old")
		r.Registered(2, "m", "new")
		require.False(r.t, r.standing(2).Current)
		r.Unregistered(2) // rolled back: its connection just closes
		require.True(r.t, r.standing(1).Current)

		r.Registered(3, "m", "third") // the next swap
		require.False(r.t, r.standing(3).Current)
		r.router.spawn("m", 2, 300)
		require.True(r.t, r.standing(3).Current)
		require.False(r.t, r.standing(1).Current)
	})
}

// A router may launch, and the launch say Hello, before our feed has told.
func TestARestartedModuleIsCurrentThoughTheFeedLags(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "first", "second")
		r.Registered(1, "m", "first")
		first := r.standing(1)
		r.Unregistered(1)
		synctest.Wait()
		r.router.set(func() { r.router.subs = nil })
		r.router.exit("m", 1, 100)
		r.router.spawn("m", 2, 200)
		r.Registered(2, "m", "second")
		second := r.standing(2)
		require.True(r.t, second.Current)
		require.NotEqual(r.t, first.Launch, second.Launch)
	})
}

// A process may say Hello before the router has noted its launch: no snapshot
// shows it then, nor any other of its module.
func TestS3_AnOwnerWhoseLaunchIsNotNotedYetIsNotLockedOut(t *testing.T) {
	for name, generation := range map[string]uint64{"at the router's start": 1, "after a restart": 2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, config.AttributionOff, func(r *rig) {
				r.router.knows("m", "first", "second")
				if generation == 2 {
					r.router.spawn("m", 1, 100)
					r.Registered(1, "m", "first")
					require.True(r.t, r.standing(1).Current)
					r.Unregistered(1)
					r.router.exit("m", 1, 100)
				}
				r.Registered(2, "m", "second")
				time.AfterFunc(150*time.Millisecond, func() { r.router.spawn("m", generation, 200) })
				require.True(r.t, r.standing(2).Current)
			})
		})
	}
}

func TestOneLaunchKeepsItsIdentityAcrossReconnects(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.Registered(1, "m", "right")
		first := r.standing(1)
		r.Unregistered(1)
		r.Registered(2, "m", "right")
		require.Equal(r.t, first, r.standing(2))
	})
}

func TestExitCutsOnlyTheHelloOfItsGeneration(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.spawn("other", 1, 101)
		r.router.knows("m", "right")
		r.router.knows("other", "o")
		r.Registered(1, "m", "right")
		r.Registered(2, "other", "o")
		r.Registered(3, "stranger", "")
		synctest.Wait()
		r.router.exit("m", 1, 100)
		synctest.Wait()
		require.Equal(r.t, []proxy.ConnID{1}, r.cutConns())
		require.False(r.t, r.standing(1).Current)
	})
}

// The exit may overtake the probe: the registration is cut when it is placed.
func TestExitBeforeTheVerdictStillCuts(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.router.set(func() { r.router.takes = time.Second })
		r.Registered(1, "m", "right")
		synctest.Wait()
		r.router.exit("m", 1, 100)
		synctest.Wait()
		require.Empty(r.t, r.cutConns())
		<-time.After(2 * time.Second) // of the bubble
		require.Equal(r.t, []proxy.ConnID{1}, r.cutConns())
	})
}

func TestAVerdictThatTellsNothingIsAskedAgain(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.router.set(func() { r.router.unknown = 3 })
		r.Registered(1, "m", "right")
		require.True(r.t, r.standing(1).Current)

		r.router.set(func() { r.router.unknown = 1000 })
		r.Unregistered(1)
		r.Registered(2, "m", "right")
		require.False(r.t, r.standing(2).Current)
		r.router.set(func() { r.router.unknown = 0 })
		require.True(r.t, r.standing(2).Current, "never a refusal for good")
	})
}

func TestAVerdictIsAskedOnceForARegistration(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.router.set(func() { r.router.takes = 100 * time.Millisecond })
		r.Registered(1, "m", "right")
		r.Registered(2, "m", "wrong")
		answers := make(chan proxy.Answer, 40)
		for range 20 {
			r.Ask(proxy.Question{Kind: proxy.AskStanding, Conn: 1}, func(a proxy.Answer) { answers <- a })
			r.Ask(proxy.Question{Kind: proxy.AskStanding, Conn: 2}, func(a proxy.Answer) { answers <- a })
		}
		for range cap(answers) {
			<-answers
		}
		require.Equal(r.t, 2, r.router.probes, "one for each nonce, the negative one too")
		require.Equal(r.t, 1, r.router.most, "one in flight")
	})
}

func TestProbesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(4, time.Second)
		began := time.Now()
		for range 4 {
			require.True(t, l.take(t.Context()))
		}
		require.Zero(t, time.Since(began), "a burst passes")
		for range 3 {
			require.True(t, l.take(t.Context()))
		}
		require.Equal(t, 3*time.Second, time.Since(began), "then one in each interval")
		<-time.After(10 * time.Second)
		began = time.Now()
		for range 4 {
			require.True(t, l.take(t.Context()))
		}
		require.Zero(t, time.Since(began), "a rest fills the bucket and no more")
		require.True(t, l.take(t.Context()))
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A router without the feed: the probe and the newest accepted Hello are all.
func TestWithoutAFeedTheNewestGenuineHelloIsCurrent(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.knows("m", "old", "new")
		r.Registered(1, "m", "old")
		old := r.standing(1)
		require.True(r.t, old.Current)
		r.Registered(2, "m", "wrong")
		require.False(r.t, r.standing(2).Current)
		require.True(r.t, r.standing(1).Current, "a wrong nonce takes nothing")
		r.Registered(3, "m", "new")
		promoted := r.standing(3)
		require.True(r.t, promoted.Current)
		require.NotEqual(r.t, old.Launch, promoted.Launch)
		require.False(r.t, r.standing(1).Current)
		require.Zero(r.t, r.router.snaps)
	}, withoutFeed)
}

func TestFeedIsTakenUpAtItsLastEvent(t *testing.T) {
	for name, end := range map[string]error{"broken": errFeed, "lagged": lagged()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, config.AttributionOff, func(r *rig) {
				r.router.spawn("m", 1, 100)
				r.router.knows("m", "right")
				r.Registered(1, "m", "right")
				require.True(r.t, r.standing(1).Current)
				synctest.Wait()
				r.router.cutFeeds(end)
				r.router.exit("m", 1, 100) // while nobody follows
				<-time.After(time.Second)
				require.Equal(r.t, []proxy.ConnID{1}, r.cutConns())
				require.Equal(r.t, []router.Cursor{{}, {Seq: 1}}, r.router.since)
			})
		})
	}
}

func TestFeedWhoseEventsAreGoneBeginsWithASnapshot(t *testing.T) {
	for _, code := range []string{router.CodeCursorTooOld, router.CodeCursorMismatch} {
		t.Run(code, func(t *testing.T) {
			bubble(t, config.AttributionOff, func(r *rig) {
				r.router.spawn("gone", 1, 100)
				r.router.spawn("stays", 1, 101)
				r.router.knows("gone", "g")
				r.router.knows("stays", "s")
				r.Registered(1, "gone", "g")
				r.Registered(2, "stays", "s")
				require.True(r.t, r.standing(1).Current)
				require.True(r.t, r.standing(2).Current)
				synctest.Wait()
				r.router.cutFeeds(errFeed)
				r.router.exit("gone", 1, 100)
				r.router.spawn("m", 5, 500)
				r.router.set(func() { r.router.dropped, r.router.events, r.router.stale = r.router.seq, nil, code })
				<-time.After(time.Second)
				require.Equal(r.t, []proxy.ConnID{1}, r.cutConns(), "an exit among the lost events")
				require.False(r.t, r.standing(1).Current)
				require.True(r.t, r.standing(2).Current)
				s := r.current()
				s.mu.Lock()
				newest := s.modules["m"].newest
				s.mu.Unlock()
				require.EqualValues(r.t, 5, newest)
				r.router.exit("m", 5, 500)
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				require.Empty(r.t, s.modules["m"].live, "and goes on with the events after it")
			})
		})
	}
}

func TestALinkThatBrokeIsReplacedAndNothingIsForgotten(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.spawn("m", 1, 100)
		r.router.knows("m", "right")
		r.Registered(1, "m", "right")
		before := r.standing(1)
		r.router.set(func() { r.router.broken = true })
		r.router.cutFeeds(closed())
		<-time.After(time.Second)
		r.router.exit("m", 1, 100)
		r.router.set(func() { r.router.broken = false })
		r.Relink(Link{Router: r.router, Subscribe: r.router.subscribe, PID: routerPID})
		<-time.After(time.Second)
		require.True(r.t, before.Current)
		require.Equal(r.t, []proxy.ConnID{1}, r.cutConns())
	})
}

func TestWithoutARouterAnswersGrantNothing(t *testing.T) {
	r := &rig{t: t, Table: New(Params{Mode: config.AttributionEnforce})}
	require.False(t, r.standing(1).Current)
	require.True(t, r.configured("m"), "it is asked to wait, not refused for good")
	r.Registered(1, "m", "n")
	r.Unregistered(1)
	r.Detach()
}
