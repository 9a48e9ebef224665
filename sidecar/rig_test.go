package sidecar

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
	"scopeward/sidecar/systemd"
)

// patience bounds every wait of a test. It is no claim: a machine that does other
// things beside takes its time.
const patience = 60 * time.Second

// rig is a place for a router and a sidecar, with neither running.
type rig struct {
	t      *testing.T
	router string // the router's connection file
	front  string // ours
	cfg    config.Config
	logs   *observer.ObservedLogs
	log    *zap.Logger

	level   zap.AtomicLevel
	manager *systemd.Manager // nil: there is none

	running []*Sidecar
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, router: filepath.Join(dir, "run", "router.json"), front: filepath.Join(dir, "side", "front.json")}
	r.cfg = config.Default()
	r.cfg.Router.ConnectionFile = r.router
	r.cfg.ConnectionFile = r.front
	r.cfg.Operator.Socket = filepath.Join(dir, "side", "s.sock")
	r.cfg.Attribution.Mode = config.AttributionOff
	r.cfg.ScopeAuthorityOwners = []string{"owner"}
	core, logs := observer.New(zapcore.DebugLevel)
	r.level = zap.NewAtomicLevel()
	r.logs, r.log = logs, zap.New(core)
	return r
}

// startRouter runs a stub router at the rig's place.
func (r *rig) startRouter(modules ...string) *routertest.Router {
	r.t.Helper()
	cfg := routertest.Config{Path: r.router}
	for _, id := range modules {
		cfg.Modules = append(cfg.Modules, routertest.ModuleConfig{ID: id, OverlapSafe: true})
	}
	router, err := routertest.NewRouter(cfg)
	require.NoError(r.t, err)
	r.t.Cleanup(router.Close)
	return router
}

// start runs a sidecar. It is stopped with the test, if stop has not done so.
func (r *rig) start() *Sidecar {
	r.t.Helper()
	s, err := r.try()
	require.NoError(r.t, err)
	return s
}

func (r *rig) try() (*Sidecar, error) {
	s := New(Params{Config: r.cfg, Log: r.log, Level: &r.level, Manager: r.manager})
	if err := s.Start(r.t.Context()); err != nil {
		return nil, err
	}
	r.running = append(r.running, s)
	r.t.Cleanup(func() {
		if slices.Contains(r.running, s) {
			r.stop(s)
		}
	})
	return s, nil
}

func (r *rig) stop(s *Sidecar) {
	r.t.Helper()
	r.running = slices.DeleteFunc(r.running, func(o *Sidecar) bool { return o == s })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(r.t, s.Stop(ctx))
}

// startBoth runs a router and a sidecar in front of it.
func (r *rig) startBoth(modules ...string) (*routertest.Router, *Sidecar) {
	r.t.Helper()
	router := r.startRouter(modules...)
	s := r.start()
	r.attached(s)
	return router, s
}

// published waits until our file is there.
func (r *rig) published() connfile.File {
	r.t.Helper()
	var f connfile.File
	eventually(r.t, "our file", func() bool {
		var err error
		f, err = connfile.Read(r.front)
		return err == nil
	})
	return f
}

// attached waits until the router is there: our file is published by then, and the
// state says so. The file alone says less, since it comes first.
func (r *rig) attached(s *Sidecar) RouterState { return r.reattached(s, "") }

// reattached waits for another start of the router than the one that made the
// incarnation gone. Until the sidecar has seen that one's end, its file is still
// published and its state still attached.
func (r *rig) reattached(s *Sidecar, gone string) (st RouterState) {
	r.t.Helper()
	eventually(r.t, "the router's state", func() bool {
		st = s.Router()
		return st.Attached && st.Incarnation != gone
	})
	return st
}

func (r *rig) withdrawn() {
	r.t.Helper()
	eventually(r.t, "our file's removal", func() bool {
		_, err := connfile.Read(r.front)
		return err != nil
	})
}

// released waits until the router has let go of a module's name. It learns of a
// connection's end after us.
func (r *rig) released(router *routertest.Router, id string) {
	r.t.Helper()
	c := routertest.Dial(r.t, router.Path())
	defer c.Close()
	eventually(r.t, "the name "+id+" to be free", func() bool {
		return string(c.Ask(routertest.Doc{"op": wire.OpCatalogList, "module_id": id}).OK().Member("modules")) == "[]"
	})
}

// failure waits for the line with which a running sidecar ends.
func (r *rig) failure(s *Sidecar) string {
	r.t.Helper()
	select {
	case err := <-s.Failed():
		require.NotContains(r.t, err.Error(), "\n")
		return err.Error()
	case <-time.After(patience):
		r.t.Fatal("the sidecar goes on")
		return ""
	}
}

// said counts the log's lines with this message.
func (r *rig) said(message string) int { return r.logs.FilterMessage(message).Len() }

// eventually asks again and again until is says yes. It asks in the test's own
// goroutine: a step of is that fails the test ends it at once, and says why.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func oneLine(t *testing.T, err error, parts ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, 1, len(strings.Split(err.Error(), "\n")), "one line: %s", err)
	for _, p := range parts {
		require.ErrorContains(t, err, p)
	}
}
