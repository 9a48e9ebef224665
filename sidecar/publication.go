package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/sidecar/config"
)

// publication is our own connection file. The path is ours alone: a lock beside
// it says so to a second sidecar, and a file there that answers is never
// replaced. A starting router that found our live file at its own path would
// take us for itself and exit.
type publication struct {
	path   string
	router string // the router's own path, never to be written
	log    *zap.Logger
	lock   *connfile.Lock

	mu        sync.Mutex
	file      connfile.File // complete while published
	published bool
}

func newPublication(path, router string, log *zap.Logger) *publication {
	return &publication{path: path, router: router, log: log}
}

// claim takes the path, or says in one line why it can't be ours.
func (p *publication) claim(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return p.refuse("its folder can't be created: "+cause(err), "create it with mode 0700", err)
	}
	if err := p.apart(); err != nil {
		return err
	}
	lock, err := connfile.TakeLock(p.path)
	if err != nil {
		return err
	}
	if err := p.vacant(ctx); err != nil {
		lock.Release()
		return err
	}
	p.lock = lock
	return nil
}

// apart refuses a path that is the router's own, by name or by link.
func (p *publication) apart() error {
	if config.Resolve(p.path) == config.Resolve(p.router) || sameFile(p.path, p.router) {
		return p.refuse(fmt.Sprintf("is the router's own file %q", p.router), "choose another path", nil)
	}
	return nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// vacant refuses a file at our path that is another's: one that answers a
// handshake, and one that is no connection file at all. A dead one is replaced.
func (p *publication) vacant(ctx context.Context) error {
	there, err := connfile.Read(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return p.refuse("there is a file that is not a dead sidecar's: "+plain(err), "move it away, or choose another path", err)
	}
	conn, err := connfile.Dial(ctx, there, handshake.RoleWatchdog)
	if err != nil {
		return nil
	}
	conn.Close()
	return p.refuse(fmt.Sprintf("a live daemon with pid %d publishes there", there.PID), "stop it, or choose another path", nil)
}

func (p *publication) refuse(what, remedy string, err error) error {
	return &StartError{Subject: fmt.Sprintf("\"connection_file\" %q", p.path), What: what, Remedy: remedy, Err: err}
}

// publish puts our file in place.
func (p *publication) publish(ctx context.Context, f connfile.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.apart(); err != nil {
		return err
	}
	if there, err := connfile.Read(p.path); err != nil || !there.SameDaemon(f) {
		if err := p.vacant(ctx); err != nil {
			return err
		}
	}
	if err := connfile.Publish(p.path, f); err != nil {
		return err
	}
	p.file, p.published = f, true
	return nil
}

// withdraw takes our file away, if it is still ours.
func (p *publication) withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.published {
		return
	}
	p.published = false
	if _, err := connfile.Remove(p.path, p.file); err != nil {
		p.log.Warn("our connection file was not removed", zap.Error(err))
	}
}

// isPublished reports whether our file is in place.
func (p *publication) isPublished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published
}

// guard watches our file until ctx ends: it is put back when it is deleted. A
// stranger's file in its place is an error, and the sidecar's end: whoever reads
// it now is led past us.
func (p *publication) guard(ctx context.Context) error {
	w, err := connfile.Watch(p.path)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		select {
		case <-w.Changes():
			if err := p.inspect(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *publication) inspect() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.published {
		return nil
	}
	there, err := connfile.Read(p.path)
	switch {
	case err == nil && there.SameDaemon(p.file):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		p.log.Warn("our connection file was deleted; publishing it again", zap.String("path", p.path))
		return connfile.Publish(p.path, p.file)
	case err == nil:
		return p.refuse(fmt.Sprintf("another daemon with pid %d has replaced our file", there.PID), "stop it, or choose another path", nil)
	}
	return p.refuse("something else has replaced our file: "+plain(err), "remove it, or choose another path", err)
}

// release gives the path up. It is the last thing that is done with it.
func (p *publication) release() {
	if p.lock != nil {
		p.lock.Release()
		p.lock = nil
	}
}

// cause is an error without the path that is named already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// plain is what a file's error says, without its name.
func plain(err error) string {
	var fe *connfile.FileError
	if errors.As(err, &fe) {
		return fe.What
	}
	return cause(err)
}
