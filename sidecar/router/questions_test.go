package router

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

func TestDescribeTellsARouterWithoutScopes(t *testing.T) {
	_, l := newTestLink(t, routertest.Config{})
	d, err := l.Describe(t.Context())
	require.NoError(t, err)
	require.True(t, d.HasSpawnFeed())
	require.False(t, d.AdvertisesScopes())
	ops, err := l.ModuleOps(t.Context())
	require.NoError(t, err)
	require.Contains(t, ops, wire.OpCatalogUpdate)
	require.False(t, ServesScopes(ops))
}

func TestScopesAreServedOnlyWithEverythingTheContractNeeds(t *testing.T) {
	all := []string{wire.CapScopes, wire.CapBindProofV1, wire.CapBindProofV2, wire.CapReplaceIfIdle}
	require.True(t, Description{Capabilities: append([]string{"more/v1"}, all...)}.AdvertisesScopes())
	for i := range all {
		some := append(append([]string{}, all[:i]...), all[i+1:]...)
		require.False(t, Description{Capabilities: some}.AdvertisesScopes(), "without %s", all[i])
	}
	ops := []string{wire.OpScopeSync, wire.OpScopeApply, wire.OpScopeDescribe}
	require.True(t, ServesScopes(ops))
	for i := range ops {
		require.False(t, ServesScopes(append(append([]string{}, ops[:i]...), ops[i+1:]...)), "without %s", ops[i])
	}
}

func TestModulesShowsTheRosterAndNeverWhoMerelyRegistered(t *testing.T) {
	r, l := newTestLink(t, routertest.Config{Modules: []routertest.ModuleConfig{{ID: "a"}, {ID: "off", Disabled: true}}})
	routertest.DialModule(t, r.Path()).Hello("stranger")
	modules, err := l.Modules(t.Context())
	require.NoError(t, err)
	var ids []string
	for _, m := range modules {
		ids = append(ids, m.ID)
		require.Equal(t, m.ID != "off", m.Enabled)
	}
	require.ElementsMatch(t, []string{"a", "off"}, ids)
}

// A candidate is in no catalog before cutover: who is, is the incumbent.
func TestRegisteredTellsWhoeverCameAndWhicheverWay(t *testing.T) {
	r, l := newTestLink(t, routertest.Config{Modules: []routertest.ModuleConfig{{ID: "a"}}})
	r.Launch("a")
	for _, id := range []string{"a", "stranger"} {
		taken, err := l.Registered(t.Context(), id)
		require.NoError(t, err)
		require.False(t, taken, "launched is not registered")
		routertest.DialModule(t, r.Path()).Hello(id)
		taken, err = l.Registered(t.Context(), id)
		require.NoError(t, err)
		require.True(t, taken)
	}
	l.Close()
	_, err := l.Registered(t.Context(), "a")
	require.Error(t, err)
}

func TestStoppedCleanlyIsWhatOurEndLeavesBehind(t *testing.T) {
	zero, one, nine := 0, 1, 9
	require.True(t, Module{Enabled: true, State: StateStopped, LastExitCode: &zero}.StoppedCleanly())
	for name, m := range map[string]Module{
		"disabled":     {State: StateStopped, LastExitCode: &zero},
		"running":      {Enabled: true, State: "running", LastExitCode: &zero},
		"failed":       {Enabled: true, State: "failed", LastExitCode: &zero},
		"exit code 1":  {Enabled: true, State: StateStopped, LastExitCode: &one},
		"never exited": {Enabled: true, State: StateStopped},
		"by a signal":  {Enabled: true, State: StateStopped, LastExitCode: &zero, LastExitSignal: &nine},
	} {
		require.False(t, m.StoppedCleanly(), name)
	}
}

func TestRestartLaunchesAStoppedModule(t *testing.T) {
	r, l := newTestLink(t, routertest.Config{Modules: []routertest.ModuleConfig{{ID: "a"}}})
	first := r.Launch("a")
	r.Exit(first, 0)
	modules, err := l.Modules(t.Context())
	require.NoError(t, err)
	require.True(t, modules[0].StoppedCleanly())
	require.NoError(t, l.Restart(t.Context(), "a"))
	second, err := r.AwaitLaunch(t.Context(), "a", first)
	require.NoError(t, err)
	require.NotEqual(t, first.Generation, second.Generation)

	err = l.Restart(t.Context(), "nobody")
	require.Equal(t, "unknown_module", Refused(err))
}

func TestFeedGoesOnFromItsCursor(t *testing.T) {
	r, l := newTestLink(t, routertest.Config{})
	a := r.Launch("a")
	snap, err := l.SpawnSnapshot(t.Context())
	require.NoError(t, err)
	require.Len(t, snap.Live, 1)
	require.Equal(t, "a", snap.Live[0].ModuleID)
	require.Equal(t, a.Generation, snap.Live[0].Generation)
	require.Equal(t, a.PID, snap.Live[0].PID)

	b := r.Launch("b") // before the subscription: it is replayed
	feed, err := l.SpawnSubscribe(snap.Cursor)
	require.NoError(t, err)
	e, err := feed.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, Spawned, e.Kind)
	require.Equal(t, "b", e.ModuleID)
	require.Equal(t, b.PID, e.PID)

	r.Exit(a, 3)
	e, err = feed.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, Exited, e.Kind)
	require.Equal(t, a.Generation, e.Generation)
	require.Equal(t, 3, *e.ExitCode)

	feed.Close()
	again, err := l.SpawnSubscribe(Cursor{snap.Cursor.Incarnation, e.Cursor.Seq - 1})
	require.NoError(t, err)
	replayed, err := again.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, e, replayed)
	again.Close()
}

func TestFeedRefusesACursorThatItCannotServe(t *testing.T) {
	r, l := newTestLink(t, routertest.Config{SpawnRing: 2})
	snap, err := l.SpawnSnapshot(t.Context())
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c", "d"} {
		r.Launch(id)
	}
	feed, err := l.SpawnSubscribe(snap.Cursor)
	require.NoError(t, err)
	_, err = feed.Next(t.Context())
	require.Equal(t, CodeCursorTooOld, Refused(err))

	feed, err = l.SpawnSubscribe(Cursor{"00112233445566778899aabbccddeeff", 1})
	require.NoError(t, err)
	_, err = feed.Next(t.Context())
	require.Equal(t, CodeCursorMismatch, Refused(err))
}

func TestAStreamThatNobodyReadsIsCut(t *testing.T) {
	l, router := pair()
	defer l.Close()
	go wire.ReadFrame(router)
	feed, err := l.SpawnSubscribe(Cursor{})
	require.NoError(t, err)
	event := wire.AppendFrame(nil, wire.Header{Type: wire.StreamData, Corr: feed.s.corr}, []byte(`{"kind":"spawned"}`))
	for range backlog + 2 {
		if _, err := router.Write(event); err != nil {
			t.Fatal(err)
		}
	}
	for range backlog {
		_, err := feed.Next(t.Context())
		require.NoError(t, err)
	}
	_, err = feed.Next(t.Context())
	require.ErrorIs(t, err, ErrLagged)
}

// Attestation: the router's own verdict, and nothing reaches anybody.
func TestAttest(t *testing.T) {
	launched := func(t *testing.T) (*routertest.Router, *Link, routertest.Launch) {
		r, l := newTestLink(t, routertest.Config{Modules: []routertest.ModuleConfig{{ID: "m"}}})
		return r, l, r.Launch("m")
	}
	judge := func(t *testing.T, l *Link, nonce string) Verdict {
		v, err := l.Attest(t.Context(), "m", nonce)
		require.NoError(t, err)
		return v
	}
	wrong := "0000000000000000000000000000000000000000000000000000000000000000"

	t.Run("nobody is registered", func(t *testing.T) {
		_, l, m := launched(t)
		require.Equal(t, Genuine, judge(t, l, m.Nonce))
		require.Equal(t, Foreign, judge(t, l, wrong))
	})
	t.Run("only the tested module is, and nothing is relayed to it", func(t *testing.T) {
		r, l, m := launched(t)
		module := routertest.DialModule(t, r.Path())
		module.Hello("m", routertest.Nonce(m))
		require.Equal(t, Genuine, judge(t, l, m.Nonce))
		require.Equal(t, Foreign, judge(t, l, wrong))
		module.NoBind()
	})
	t.Run("it provides no role", func(t *testing.T) {
		r, l, m := launched(t)
		routertest.DialModule(t, r.Path()).Hello("m", routertest.Nonce(m), routertest.Roles())
		require.Equal(t, Genuine, judge(t, l, m.Nonce))
		require.Equal(t, Foreign, judge(t, l, wrong))
	})
	t.Run("nobody is ready", func(t *testing.T) {
		r, l, m := launched(t)
		module := routertest.DialModule(t, r.Path())
		module.Hello("m", routertest.Nonce(m), routertest.NotReady())
		require.Equal(t, Genuine, judge(t, l, m.Nonce))
		require.Equal(t, Foreign, judge(t, l, wrong))
		module.NoBind()
	})
	t.Run("another module serves as the target", func(t *testing.T) {
		r, l, m := launched(t)
		other := routertest.DialModule(t, r.Path())
		other.Hello("other")
		require.Equal(t, Genuine, judge(t, l, m.Nonce))
		require.Equal(t, Foreign, judge(t, l, wrong))
		other.NoBind()
	})
	t.Run("both launches of a swap are live", func(t *testing.T) {
		r, l := newTestLink(t, routertest.Config{Modules: []routertest.ModuleConfig{{ID: "m", OverlapSafe: true}}})
		incumbent := r.Launch("m")
		routertest.DialModule(t, r.Path()).Hello("m", routertest.Nonce(incumbent))
		candidate, err := r.Swap("m")
		require.NoError(t, err)
		require.Equal(t, Genuine, judge(t, l, incumbent.Nonce))
		require.Equal(t, Genuine, judge(t, l, candidate.Nonce))
	})
	t.Run("the helper is gone afterwards", func(t *testing.T) {
		r, l, m := launched(t)
		require.Equal(t, Genuine, judge(t, l, m.Nonce))
		probe := routertest.Dial(t, r.Path())
		require.Eventually(t, func() bool {
			var catalog struct {
				Modules []struct{} `json:"modules"`
			}
			probe.Ask(routertest.Doc{"op": wire.OpCatalogList}).OK().Into(&catalog)
			return len(catalog.Modules) == 0
		}, time.Minute, 5*time.Millisecond)
	})
}
