package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/sidecar/config"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/router"
)

const (
	// lookEvery is how often a router that is not there is looked for, beside the
	// changes of its file: a stale file may come to life unchanged.
	lookEvery = 250 * time.Millisecond
	// wrongKeyAfter is how long a file may name a living process that does not hold
	// its key. A starting router listens before it has written its new file.
	wrongKeyAfter = 3 * time.Second
)

// keeper keeps the router's presence. It alone attaches and detaches.
type keeper struct {
	path        string
	scopes      config.Scopes
	log         *zap.Logger
	server      *proxy.Server
	launches    *launch.Table
	publication *publication
	healer      *healer
	attribution *attribution
	file        connfile.File // ours, without the router's version

	mu    sync.Mutex
	state RouterState
}

// RouterState is the router as the operator sees it.
type RouterState struct {
	Attached    bool
	Why         string // why it is not attached
	PID         uint32
	Version     string
	Addr        string
	Pass        bool // scope ops pass through unchanged
	Able        bool // it serves all of scopes/v1 itself
	SpawnFeed   bool
	Incarnation string // ours
	Since       time.Time
}

// State returns the router's state.
func (k *keeper) State() RouterState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *keeper) setState(s RouterState) {
	s.Since = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
}

// run follows the router until ctx ends. An error is one that an operator has to
// correct.
func (k *keeper) run(ctx context.Context) error {
	w, err := connfile.Watch(k.path)
	if err != nil {
		return err
	}
	defer w.Close()
	for known := false; ctx.Err() == nil; known = true {
		link, err := k.await(ctx, w, known)
		if err != nil {
			return err
		}
		if link == nil {
			return nil
		}
		if err := k.attend(ctx, link); err != nil {
			return err
		}
	}
	return nil
}

// await looks for the router until it is there. It returns nil when ctx ends
// first. What only an operator can correct is an error before the router was
// ever there, and later a state that is waited out.
func (k *keeper) await(ctx context.Context, w *connfile.Watcher, known bool) (*router.Link, error) {
	var wrong stubborn
	said := ""
	for {
		file, link, err := k.find(ctx)
		if err == nil {
			return link, nil
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		if !known {
			if err := k.hopeless(file, err, &wrong); err != nil {
				return nil, err
			}
		}
		if why := absence(err); why != said {
			k.log.Info("waiting for the router", zap.String("file", k.path), zap.String("why", why))
			k.setState(RouterState{Why: why})
			said = why
		}
		select {
		case <-w.Changes():
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (k *keeper) find(ctx context.Context) (connfile.File, *router.Link, error) {
	file, err := connfile.Read(k.path)
	if err != nil {
		return file, nil, err
	}
	link, err := router.Dial(ctx, file)
	return file, link, err
}

// stubborn is a file whose daemon does not hold its key, and since when.
type stubborn struct {
	file  connfile.File
	since time.Time
}

// hopeless tells what is wrong from what is not there yet.
func (k *keeper) hopeless(file connfile.File, err error, wrong *stubborn) error {
	switch {
	case errors.Is(err, connfile.ErrInsecure), errors.Is(err, fs.ErrPermission):
		return err
	case !misproven(err) || !alive(file.PID):
		wrong.since = time.Time{}
		return nil
	case wrong.since.IsZero() || !wrong.file.SameDaemon(file):
		wrong.file, wrong.since = file, time.Now()
		return nil
	case time.Since(wrong.since) < wrongKeyAfter:
		return nil
	}
	return &StartError{
		Subject: fmt.Sprintf("\"router.connection_file\" %q", k.path),
		What:    fmt.Sprintf("what listens on %s does not hold this file's key", file.Endpoints[0].Address()),
		Remedy:  "name the file that the running router has written, or restart the router",
		Err:     err,
	}
}

func misproven(err error) bool {
	return errors.Is(err, handshake.ErrServerProof) || errors.Is(err, handshake.ErrDaemonID)
}

// alive reports whether a process with this PID is there, ours or not.
func alive(pid uint32) bool {
	return pid != 0 && !errors.Is(syscall.Kill(int(pid), 0), syscall.ESRCH)
}

// absence says in stable words why the router is not there: a reason is logged
// once.
func absence(err error) string {
	var fe *connfile.FileError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its connection file does not exist"
	case errors.As(err, &fe):
		return fe.What
	case errors.Is(err, connfile.ErrNoEndpoint):
		return "its connection file is stale: nothing listens there"
	case misproven(err):
		return "its connection file is stale: another daemon listens there"
	}
	return "it does not complete a handshake"
}

// attend attaches the router behind link and stays with it until it is gone.
func (k *keeper) attend(ctx context.Context, link *router.Link) error {
	defer func() { link.Close() }()
	if err := k.attach(ctx, link); err != nil {
		k.detach()
		return k.attachFailed(ctx, err)
	}
	defer k.detach()
	for {
		k.stay(ctx, link)
		if ctx.Err() != nil {
			return nil
		}
		again := k.again(ctx, link)
		if again == nil {
			return nil
		}
		link.Close()
		link = again
	}
}

// stay heals while the link holds, and returns at its end.
func (k *keeper) stay(ctx context.Context, link *router.Link) {
	healing, cancel := context.WithCancel(ctx)
	var healed sync.WaitGroup
	healed.Go(func() { k.healer.heal(healing, link) })
	select {
	case <-link.Done():
	case <-ctx.Done():
	}
	cancel()
	healed.Wait()
}

// attachFailed tells an error of ours, which ends the sidecar, from the router's
// going away in the middle.
func (k *keeper) attachFailed(ctx context.Context, err error) error {
	var se *StartError
	var fe *connfile.FileError
	if errors.As(err, &se) || errors.As(err, &fe) {
		return err
	}
	if ctx.Err() == nil {
		k.log.Warn("the router was there and did not answer; looking again", zap.Error(err))
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
	return nil
}

// attach builds everything that lives as long as this start of the router, and
// publishes last.
func (k *keeper) attach(ctx context.Context, link *router.Link) error {
	d, err := link.Describe(ctx)
	if err != nil {
		return err
	}
	pass, able, err := k.passes(ctx, link, d)
	if err != nil {
		return err
	}
	k.attribution.router(link)
	if err := k.launches.Attach(ctx, launchLink(link, d), k.server.Cut); err != nil {
		return err
	}
	incarnation := newIncarnation()
	k.server.Attach(proxy.Upstream{
		Addr: link.Addr(), Key: link.File.Key, DaemonID: link.File.DaemonID,
		DaemonVer: link.File.DaemonVer, Pass: pass,
	}, incarnation)
	ours := k.file
	ours.DaemonVer = link.File.DaemonVer
	if err := k.publication.publish(ctx, ours); err != nil {
		return err
	}
	k.setState(RouterState{
		Attached: true, PID: link.File.PID, Version: link.File.DaemonVer, Addr: link.Addr(), Pass: pass, Able: able,
		SpawnFeed: d.HasSpawnFeed(), Incarnation: incarnation,
	})
	k.log.Info("the router is there, our connection file is published",
		zap.String("file", k.publication.path), zap.String("router", link.Addr()),
		zap.Uint32("router_pid", link.File.PID), zap.String("router_version", link.File.DaemonVer),
		zap.String("incarnation", incarnation), zap.Bool("spawn_feed", d.HasSpawnFeed()))
	return nil
}

func launchLink(link *router.Link, d router.Description) launch.Link {
	l := launch.Link{Router: link, PID: link.File.PID}
	if d.HasSpawnFeed() {
		l.Subscribe = func(since router.Cursor) (launch.Feed, error) {
			f, err := link.SpawnSubscribe(since)
			if err != nil {
				return nil, err
			}
			return f, nil
		}
	}
	return l
}

// passes decides who serves scopes, and says so. able says that the router can.
func (k *keeper) passes(ctx context.Context, link *router.Link, d router.Description) (pass, able bool, err error) {
	able = d.AdvertisesScopes()
	if able && k.scopes == config.ScopesAuto {
		ops, err := link.ModuleOps(ctx)
		if err != nil {
			return false, false, err
		}
		able = router.ServesScopes(ops)
	}
	switch {
	case k.scopes == config.ScopesPass && !able:
		k.log.Warn("the router does not serve all of scopes/v1, and scopes is pass: nobody does")
		return true, able, nil
	case k.scopes == config.ScopesPass || k.scopes == config.ScopesAuto && able:
		k.log.Info("the router serves scopes itself: scope ops pass through unchanged", zap.String("scopes", string(k.scopes)))
		return true, able, nil
	}
	return false, able, nil
}

// again takes up a link that broke, when the same start of the router is still
// there. nil says that it is not.
func (k *keeper) again(ctx context.Context, gone *router.Link) *router.Link {
	file, link, err := k.find(ctx)
	if err != nil {
		k.log.Info("the router is gone", zap.String("why", absence(err)), zap.NamedError("link", gone.Err()))
		return nil
	}
	if !file.SameDaemon(gone.File) {
		k.log.Info("the router is gone, another has taken its place")
		link.Close()
		return nil
	}
	d, err := link.Describe(ctx)
	if err != nil {
		link.Close()
		return nil
	}
	k.launches.Relink(launchLink(link, d))
	k.log.Warn("the link to the router broke and was taken up again", zap.NamedError("why", gone.Err()))
	return link
}

// detach is everything that attach did, backwards: whoever would come now must
// not find us.
func (k *keeper) detach() {
	k.publication.withdraw()
	k.healer.hold()
	k.server.Detach()
	k.launches.Detach()
	k.setState(RouterState{Why: "it is gone"})
}

// self is our own entry in our file.
func self() uint32 { return uint32(os.Getpid()) }
