package sidecar

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/sidecar/config"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/router"
)

// lookEvery is how often a router that is not there is looked for, beside the
// changes of its file: a stale file may come to life unchanged.
const lookEvery = 250 * time.Millisecond

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
