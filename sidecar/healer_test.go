package sidecar

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/proxy/routertest"
)

const healedOne = "restarted a module that our end had stopped"

// remembered waits until the heal state's file names exactly these modules.
func (r *rig) remembered(want string) {
	r.t.Helper()
	eventually(r.t, "the heal state "+want, func() bool {
		data, err := os.ReadFile(r.front + healSuffix)
		return err == nil && string(data) == want+"\n"
	})
}

// relaunched waits for another launch than before, and for the log to have told of
// healed of them in all.
func (r *rig) relaunched(router *routertest.Router, before routertest.Launch, healed int) routertest.Launch {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	next, err := router.AwaitLaunch(ctx, before.ModuleID, before)
	require.NoError(r.t, err)
	eventually(r.t, "the log's line", func() bool { return r.said(healedOne) >= healed })
	require.Equal(r.t, healed, r.said(healedOne))
	return next
}

// leftAlone sees that nothing has been launched after before when healing would
// have looked three times.
func (r *rig) leftAlone(router *routertest.Router, before routertest.Launch) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*healEvery)
	defer cancel()
	_, err := router.AwaitLaunch(ctx, before.ModuleID, before)
	require.Error(r.t, err)
}

func TestAfterOurRestartTheModulesThatWeStoppedAreRestarted(t *testing.T) {
	r := newRig(t)
	router, s := r.startBoth("b", "a")
	launches := map[string]routertest.Launch{}
	for _, id := range []string{"b", "a"} {
		launches[id] = router.Launch(id)
		routertest.DialModule(t, r.front).Hello(id, routertest.Nonce(launches[id]))
	}
	r.remembered(`{"version":1,"modules":["a","b"]}`)
	r.stop(s)
	r.remembered(`{"version":1,"modules":["a","b"]}`)
	router.Exit(launches["a"], 0) // as an SDK does when its connection ends
	r.start()
	r.published()
	r.relaunched(router, launches["a"], 1)
	router.Exit(launches["b"], 0) // a slow one, ended after our return
	r.relaunched(router, launches["b"], 2)
}

func TestWhatWeDidNotStopIsNotRestarted(t *testing.T) {
	for name, end := range map[string]func(r *rig, router *routertest.Router, s *Sidecar, m *routertest.Module, l routertest.Launch){
		"it still runs": func(r *rig, _ *routertest.Router, s *Sidecar, _ *routertest.Module, _ routertest.Launch) {
			r.stop(s)
		},
		"it is disabled": func(r *rig, router *routertest.Router, s *Sidecar, _ *routertest.Module, l routertest.Launch) {
			r.stop(s)
			routertest.Dial(r.t, router.Path()).Ask(routertest.Doc{
				"op": "supervisor.set_enabled", "module_id": "m", "enabled": false,
			}).OK()
			router.Exit(l, 0)
		},
		"it finished by itself while we ran": func(r *rig, router *routertest.Router, s *Sidecar, m *routertest.Module, l routertest.Launch) {
			m.Close()
			r.remembered(`{"version":1,"modules":[]}`)
			router.Exit(l, 0)
			r.stop(s)
		},
		"an operator does not want it": func(r *rig, router *routertest.Router, s *Sidecar, _ *routertest.Module, l routertest.Launch) {
			r.stop(s)
			router.Exit(l, 0)
			r.cfg.Heal = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			router, s := r.startBoth("m")
			l := router.Launch("m")
			m := routertest.DialModule(t, r.front)
			m.Hello("m", routertest.Nonce(l))
			r.remembered(`{"version":1,"modules":["m"]}`)
			end(r, router, s, m, l)
			r.start()
			r.published()
			r.leftAlone(router, l)
			require.Zero(t, r.said(healedOne))
			require.Zero(t, r.said("a module that our end had stopped was not restarted"))
		})
	}
}

func TestAModuleThatEndsAgainAndAgainIsLeftAlone(t *testing.T) {
	r := newRig(t)
	router, s := r.startBoth("m")
	l := router.Launch("m")
	routertest.DialModule(t, r.front).Hello("m", routertest.Nonce(l))
	r.remembered(`{"version":1,"modules":["m"]}`)
	r.stop(s)
	router.Exit(l, 0)
	r.start()
	r.published()
	for n := range healTries {
		l = r.relaunched(router, l, n+1)
		router.Exit(l, 0)
	}
	r.leftAlone(router, l)
	require.Equal(t, healTries, r.said(healedOne))
}

func TestABrokenHealStateCostsNoMoreThanItself(t *testing.T) {
	for _, content := range []string{"", "{", `{"version":2,"modules":[]}`, `{"version":1,"modules":["a"],"more":1}`} {
		r := newRig(t)
		require.NoError(t, os.MkdirAll(r.front[:len(r.front)-len("/front.json")], 0o700))
		require.NoError(t, os.WriteFile(r.front+healSuffix, []byte(content), 0o600))
		h := newHealer(r.front+healSuffix, r.log)
		h.load()
		require.False(t, h.any())
		require.Equal(t, 1, r.said("the heal state is not read; modules that we stopped stay stopped"), content)
	}
}

// A cut of ours leaves a module stopped as our end does, though we go on.
func TestAModuleThatWeCutOffIsRestarted(t *testing.T) {
	r := newRig(t)
	router, s := r.startBoth("m")
	l := router.Launch("m")
	m := routertest.DialModule(t, r.front)
	m.Hello("m", routertest.Nonce(l))
	r.remembered(`{"version":1,"modules":["m"]}`)
	var conn proxy.ConnID
	s.healer.mu.Lock()
	for conn = range s.healer.conns {
	}
	s.healer.mu.Unlock()

	registrar{s.launches, s.healer}.Severed(conn) // as the proxy says before it ends one
	m.Close()
	m.Ended()
	router.Exit(l, 0)
	r.relaunched(router, l, 1)
	r.remembered(`{"version":1,"modules":["m"]}`)
}
