package scenario

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/sidecar"
	"scopeward/sidecar/config"
)

// stage is a router with a sidecar in front of it. Its roster is fixed: owner,
// who alone may set attributes, other, mate, kid, tool, util, and off, which is
// disabled.
type stage struct {
	t       *testing.T
	cfg     routertest.Config
	router  *routertest.Router
	front   string // the sidecar's connection file
	logs    *observer.ObservedLogs
	modules map[string]*module // the newest of each id
}

// play raises a stage. The test runs beside others.
func play(t *testing.T, change ...func(*routertest.Config)) *stage {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	s := &stage{t: t, front: filepath.Join(dir, "front", "c.json"), modules: map[string]*module{}}
	drain := 300 * time.Millisecond
	for _, id := range []string{"owner", "other", "mate", "kid", "tool", "util"} {
		s.cfg.Modules = append(s.cfg.Modules, routertest.ModuleConfig{ID: id, OverlapSafe: true, DrainTimeout: &drain})
	}
	s.cfg.Modules = append(s.cfg.Modules, routertest.ModuleConfig{ID: "off", Disabled: true})
	s.cfg.Path = filepath.Join(dir, "router", "c.json")
	for _, f := range change {
		f(&s.cfg)
	}
	s.startRouter()

	cfg := config.Default()
	cfg.Router.ConnectionFile, cfg.ConnectionFile = s.cfg.Path, s.front
	cfg.Operator.Socket = filepath.Join(dir, "front", "s")
	cfg.Attribution.Mode = config.AttributionOff // everybody is one process here
	cfg.ScopeAuthorityOwners = []string{"owner"}
	core, logs := observer.New(zapcore.DebugLevel)
	s.logs = logs
	front := sidecar.New(sidecar.Params{Config: cfg, Log: zap.New(core)})
	require.NoError(t, front.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), routertest.Patience)
		defer cancel()
		require.NoError(t, front.Stop(ctx))
	})
	s.published(true)
	return s
}

func bindTimeout(d time.Duration) func(*routertest.Config) {
	return func(c *routertest.Config) { c.BindTimeout = d }
}

func (s *stage) startRouter() {
	s.t.Helper()
	router, err := routertest.NewRouter(s.cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(router.Close)
	s.router = router
}

// restartRouter ends the router, and with it every connection, and starts one
// that knows nothing.
func (s *stage) restartRouter() {
	s.t.Helper()
	s.router.Close()
	s.published(false)
	s.startRouter()
	s.published(true)
}

// published waits until the sidecar's file is there, or gone.
func (s *stage) published(there bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_, err := connfile.Read(s.front)
		return (err == nil) == there
	}, routertest.Patience, time.Millisecond, "the sidecar's file is there: %t", there)
}

// soon is a deadline that many milliseconds from now.
func soon(ms int64) uint64 { return uint64(time.Now().UnixMilli() + ms) }
