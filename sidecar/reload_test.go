package sidecar

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/deploy"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
	"scopeward/sidecar/operator/api"
)

const (
	reloaded    = "the configuration was reloaded"
	notReloaded = "the configuration was not reloaded: the one in use stays"
)

// loading is a configuration file that says c now.
func loading(c config.Config) func() (config.Config, error) {
	return func() (config.Config, error) { return c, nil }
}

func TestAReloadTakesTheLevel(t *testing.T) {
	r := newRig(t)
	s := r.start()
	next := r.cfg
	next.Log.Level = config.LevelError
	s.reload(loading(next))
	require.Equal(t, zap.ErrorLevel, r.level.Level())
	require.Equal(t, []any{"log.level"}, r.logs.FilterMessage(reloaded).All()[0].ContextMap()["changed"])
}

func TestAReloadThatFailsChangesNothingAndSaysWhy(t *testing.T) {
	r := newRig(t)
	s := r.start()
	before := s.running
	s.reload(func() (config.Config, error) {
		return config.Config{}, &config.Error{File: "sw.jsonc", Line: 3, Column: 1, What: "is not JSON"}
	})
	require.Equal(t, before, s.running)
	require.Equal(t, "sw.jsonc:3:1: is not JSON", r.logs.FilterMessage(notReloaded).All()[0].ContextMap()["error"])
	require.Zero(t, r.said(reloaded))
	shown := s.state().Config
	require.Equal(t, "sw.jsonc:3:1: is not JSON", shown.Fault)
	require.NotZero(t, shown.RefusedAtMS)
	require.Zero(t, shown.ReloadedAtMS)
}

// What waits for a restart is shown for as long as it waits, and a reload that is
// refused leaves it so.
func TestStatusShowsWhatWaitsForARestart(t *testing.T) {
	r := newRig(t)
	s := r.start()
	require.Equal(t, api.Config{Waiting: []string{}}, s.state().Config)
	next := r.cfg
	next.Heal, next.Scopes = !r.cfg.Heal, config.ScopesPass
	s.reload(loading(next))
	require.Equal(t, []string{"scopes", "heal"}, s.state().Config.Waiting)
	require.NotZero(t, s.state().Config.ReloadedAtMS)
	s.reload(func() (config.Config, error) { return config.Config{}, errors.New("x") })
	require.Equal(t, []string{"scopes", "heal"}, s.state().Config.Waiting)
	s.reload(loading(r.cfg))
	require.Empty(t, s.state().Config.Waiting)
	require.Empty(t, s.state().Config.Fault)
}

// A stamp's owner_authorized goes by the owners of the start until there is
// another start.
func TestChangedAuthorityOwnersNeedARestartAndChangeNoStamp(t *testing.T) {
	r := newRig(t)
	_, s := r.startBoth()
	next := r.cfg
	next.ScopeAuthorityOwners = []string{"another"}
	next.Log.Level = config.LevelDebug
	applied, waiting := s.apply(next)
	require.Equal(t, []string{"log.level"}, applied)
	require.Equal(t, []string{"scope_authority_owners"}, waiting)
	require.Equal(t, []string{"owner"}, s.running.ScopeAuthorityOwners)

	// It is named again until the restart: what is in effect still differs.
	s.reload(loading(next))
	require.Equal(t, 1, r.said("a changed key needs a restart and stays as it was until then: scope_authority_owners"))
}

func TestEveryOtherKeyNeedsARestart(t *testing.T) {
	r := newRig(t)
	s := r.start()
	next := config.Config{
		Version: 1, Router: config.Router{ConnectionFile: "/a"}, Listen: "b", ConnectionFile: "/c", Scopes: "own",
		Attribution: config.Attribution{Mode: config.AttributionEnforce, Match: r.cfg.Attribution.Match, Cgroup: "/d"},
		Operator:    config.Operator{Socket: "/e"}, Metrics: config.Metrics{Listen: "f"},
		Ledger: config.Ledger{Path: "/g", Tombstones: true}, Log: config.Log{Level: r.cfg.Log.Level, Format: config.FormatJSON},
	}
	applied, waiting := s.apply(next)
	require.Empty(t, applied)
	require.Equal(t, []string{
		"router.connection_file", "listen", "connection_file", "scope_authority_owners", "scopes", "heal",
		"attribution.mode", "attribution.cgroup", "operator.socket", "metrics.listen", "ledger.path", "ledger.tombstones", "ledger.wait_ms", "log.format",
	}, waiting)
	require.Equal(t, r.cfg, s.running)
}

// From observe to enforce and back, while modules run.
func TestAReloadChangesWhatAMismatchLeadsTo(t *testing.T) {
	r := newRig(t)
	r.cfg.Attribution = config.Attribution{Mode: config.AttributionObserve, Match: config.MatchExact}
	router, s := r.startBoth("stolen")
	if s.attribution.source == nil {
		t.Skip("no source of attribution works here")
	}
	stolen := router.LaunchAs("stolen", 1) // init, which is not us
	client := routertest.Dial(t, r.front)
	module := routertest.DialModule(t, r.front)
	module.Hello("stolen", routertest.Nonce(stolen))
	module.Serve()
	require.Equal(t, "hi", client.Open("stolen", routertest.As(stolen)).Call("hi"))

	next := r.cfg
	next.Attribution.Mode = config.AttributionEnforce
	applied, waiting := s.apply(next)
	require.Equal(t, []string{"attribution.mode"}, applied)
	require.Empty(t, waiting)
	require.Equal(t, "enforce", s.attribution.view().Mode)
	client.OpenRefused(wire.CodeBadConsumerIdentity, "stolen", routertest.As(stolen))

	s.apply(r.cfg)
	require.Equal(t, "hi", client.Open("stolen", routertest.As(stolen)).Call("hi"))

	next.Attribution.Mode = config.AttributionOff
	_, waiting = s.apply(next)
	require.Equal(t, []string{"attribution.mode"}, waiting)
	require.Equal(t, "observe", s.attribution.view().Mode)
}

// What the README and the sample say a reload takes is what it takes.
func TestWhatAReloadTakesIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|.*\\| reload[^|]*\\|$").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, row[1])
	}
	require.ElementsMatch(t, reloadable, listed)
	sample := string(deploy.File(deploy.SampleConfig))
	_, sample, _ = strings.Cut(sample, "{\n")
	require.Equal(t, len(reloadable), strings.Count(sample, "Reload"))
}

// The manager takes a reload for begun and ended by two messages, a failed one
// too.
func TestTheManagerHearsOfAReload(t *testing.T) {
	r := newRig(t)
	fake := r.supervised()
	s := r.start()
	fake.Await("READY", "1")
	for _, load := range []func() (config.Config, error){
		loading(r.cfg),
		func() (config.Config, error) { return config.Config{}, errors.New("x") },
	} {
		s.reload(load)
		require.Contains(t, fake.Await("RELOADING", "1"), "MONOTONIC_USEC")
		fake.Await("READY", "1")
	}
}

// A hangup reloads, and the end of the context ends.
func TestServeReloadsAtAHangup(t *testing.T) {
	r := newRig(t)
	s := r.start()
	hangup := make(chan os.Signal)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- s.serve(ctx, RunParams{Config: r.cfg, Load: loading(r.cfg), Reload: hangup}) }()
	hangup <- os.Interrupt
	eventually(t, "the reload", func() bool { return r.said(reloaded) == 1 })
	cancel()
	require.NoError(t, <-ended)
}
