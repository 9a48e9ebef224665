package main

import (
	"fmt"
	"os"
	"path/filepath"

	"scopeward/proxy/connfile"
)

// The worlds, by the names of the command line.
const (
	worldDirect  = "direct"
	worldHAProxy = "haproxy"
	worldPlain   = "plain"
	worldOurs    = "ours"
	worldNative  = "native"
)

func worldNames() []string {
	return []string{worldDirect, worldHAProxy, worldPlain, worldNative, worldOurs}
}

// world is a router, what stands in front of it, and the modules' connections.
// Every connection of the load goes to front.
type world struct {
	name     string
	dir      string
	router   *process
	proxy    *process // nil where nothing stands in front
	front    connfile.File
	roster   *roster
	launches map[string]launch
	echoes   []*echo
	owners   map[string]*owner // registered when first asked for
}

// startWorld starts a world in a new folder under scratch. Its echo modules
// are registered; the others are not, since not every phase wants them.
func startWorld(name, scratch string, b binaries) (_ *world, err error) {
	dir, err := os.MkdirTemp(scratch, name+"-")
	if err != nil {
		return nil, err
	}
	w := &world{name: name, dir: dir}
	defer func() {
		if err != nil {
			err = fmt.Errorf("world %s: %w", name, err)
			w.stop()
		}
	}()
	for _, d := range []string{"cfg/cortexkit", "run", "data", "home", "side"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	if err := w.startProcesses(b); err != nil {
		return nil, err
	}
	if w.launches, err = w.roster.collect(moduleNames(), startup); err != nil {
		return nil, err
	}
	for _, module := range []string{moduleEcho, moduleEcho2} {
		p, err := register(w.front, w.launches[module])
		if err != nil {
			return nil, err
		}
		w.echoes = append(w.echoes, serveEcho(p))
	}
	return w, nil
}

func (w *world) startProcesses(b binaries) (err error) {
	socket := filepath.Join(w.dir, "roster")
	if w.roster, err = openRoster(socket); err != nil {
		return err
	}
	binary := b.router
	if w.name == worldNative {
		binary = b.native
	}
	if w.router, w.front, err = startRouter(w.dir, binary, socket, w.name == worldNative); err != nil {
		return err
	}
	switch w.name {
	case worldHAProxy:
		w.proxy, w.front, err = startHAProxy(w.dir, b.haproxy, w.front)
	case worldPlain:
		w.proxy, w.front, err = startPlain(w.dir, w.front)
	case worldOurs:
		w.proxy, w.front, err = startSidecar(w.dir, b.scopeward, w.front)
	}
	return err
}

// stop ends everything of the world and removes its folder.
func (w *world) stop() error {
	for _, p := range []*process{w.proxy, w.router} {
		if p != nil {
			p.kill()
		}
	}
	for _, e := range w.echoes {
		e.stop()
	}
	for _, o := range w.owners {
		o.Close()
	}
	if w.roster != nil {
		w.roster.close()
	}
	return os.RemoveAll(w.dir)
}

// kill ends the processes at once, from any goroutine: every read of the load
// returns.
func (w *world) kill() {
	for _, p := range []*process{w.proxy, w.router} {
		if p != nil {
			_ = p.cmd.Process.Kill()
		}
	}
}

// guard is the process in front.
func (w *world) guard() (*process, error) {
	if w.proxy == nil {
		return nil, errNoProxy
	}
	return w.proxy, nil
}
