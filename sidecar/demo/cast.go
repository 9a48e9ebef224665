package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/sidecar"
	"scopeward/sidecar/config"
)

// The modules of the story.
const (
	owner    = "prefrontal-core"
	provider = "mailbox"
	runner   = "broca"
)

// cast is everybody on stage. Its cleanups run in reverse order.
type cast struct {
	router   *routertest.Router
	file     string // the sidecar's connection file
	failed   error
	cleanups []func()
}

// Helper, Fatalf and Cleanup make a cast a [routertest.TB]: what fails an actor
// ends the story's goroutine.
func (c *cast) Helper() {}

// Fatalf notes the failure and ends the calling goroutine.
func (c *cast) Fatalf(format string, args ...any) {
	c.failed = fmt.Errorf(format, args...)
	runtime.Goexit()
}

// Cleanup keeps f for the end.
func (c *cast) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

func (c *cast) close() {
	for i := len(c.cleanups) - 1; i >= 0; i-- {
		c.cleanups[i]()
	}
}

// play runs the story on a goroutine of its own, since an actor's failure ends
// it, and waits.
func (c *cast) play(story func()) error {
	done := make(chan struct{})
	finished := false
	go func() {
		defer close(done)
		defer c.close()
		story()
		finished = true
	}()
	<-done
	if c.failed == nil && !finished {
		c.failed = errors.New("the story ended early")
	}
	return c.failed
}

// raise starts the router and the sidecar in a folder of their own.
func (c *cast) raise(ctx context.Context) {
	dir, err := os.MkdirTemp("", "scopeward-demo-")
	if err != nil {
		c.Fatalf("no folder for the demo: %v", err)
	}
	c.Cleanup(func() { _ = os.RemoveAll(dir) })
	router, err := routertest.NewRouter(routertest.Config{Modules: []routertest.ModuleConfig{{ID: owner}, {ID: provider}, {ID: runner}}})
	if err != nil {
		c.Fatalf("the stub router did not start: %v", err)
	}
	c.router = router
	c.Cleanup(router.Close)

	c.file = filepath.Join(dir, "connection.json")
	cfg := config.Default()
	cfg.Router.ConnectionFile, cfg.ConnectionFile = router.Path(), c.file
	cfg.Attribution.Mode = config.AttributionOff // everybody is one process here
	s := sidecar.New(sidecar.Params{Config: cfg, Log: zap.NewNop()})
	if err := s.Start(ctx); err != nil {
		c.Fatalf("the sidecar did not start: %v", err)
	}
	c.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.Stop(stopping)
	})
	c.await(ctx)
}

// await waits until the sidecar has published its file.
func (c *cast) await(ctx context.Context) {
	w, err := connfile.Watch(c.file)
	if err != nil {
		c.Fatalf("%v", err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(ctx, routertest.Patience)
	defer cancel()
	for {
		if _, err := connfile.Read(c.file); err == nil {
			return
		}
		select {
		case <-w.Changes():
		case <-ctx.Done():
			c.Fatalf("the sidecar did not publish %s", c.file)
		}
	}
}
