package routertest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// firstPID is where minted PIDs begin: over every real one.
const firstPID = 1 << 22

// Launch is one start of a supervised module. Its nonce is a secret.
type Launch struct {
	ModuleID   string
	Nonce      string
	PID        uint32
	Generation uint64 // of a candidate: the one it takes at cutover
	Candidate  bool   // started beside an incumbent by a swap
}

// Spawner starts and stops the processes of launches. Its methods are called
// under the router's lock: they return soon and don't call the router back.
type Spawner interface {
	// Spawn starts l's process and returns its PID. When the process ends,
	// Router.Exit or Router.Crash is called with the launch that has that PID.
	Spawn(l Launch, m ModuleConfig) (pid uint32, err error)
	// Signal asks l's process to end. It may be gone.
	Signal(l Launch, sig unix.Signal)
}

// The states of a supervised module, as supervisor.list names them.
const (
	stateStarting   = "starting"
	stateRunning    = "running"
	stateDraining   = "draining"
	stateRestarting = "restarting"
	stateStopped    = "stopped"
	stateFailed     = "failed"
	stateDisabled   = "disabled"
)

// supervised is one module of the roster.
type supervised struct {
	cfg        ModuleConfig
	enabled    bool
	state      string
	launch     *Launch // the live process, nil when there is none
	nonce      string  // of the newest launch, kept when it ends
	spawnedMS  int64
	generation uint64
	last       *exit
	crashes    []time.Time // restarts within the window
	restarts   int         // in all
	onExit     func()      // who waits for the live process to end
	onRelease  func()      // who waits for its registration to go
	swap       *swap
}

func (m *supervised) knowsNonce(nonce string) bool {
	return nonce == m.nonce || m.swap != nil && m.swap.knowsNonce(nonce)
}

// nonceRefused reports whether a Hello for id needs another nonce: only a
// reserved id needs one at all.
func (r *Router) nonceRefused(id, nonce string) bool {
	m := r.roster[id]
	return m != nil && m.cfg.Reserved && (m.nonce == "" || nonce != m.nonce)
}

func (r *Router) startRoster() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cfg := range r.cfg.Modules {
		r.configure(cfg)
	}
	if r.cfg.Spawner == nil {
		return nil
	}
	for _, id := range r.order {
		if m := r.roster[id]; m.enabled {
			if err := r.start(m, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Router) configure(cfg ModuleConfig) *supervised {
	m := &supervised{cfg: cfg, enabled: !cfg.Disabled, state: stateStopped}
	if cfg.Disabled {
		m.state = stateDisabled
	}
	r.roster[cfg.ID] = m
	r.order = append(r.order, cfg.ID)
	return m
}

// Launch starts the module id, or returns its live launch. An id that is not in
// the roster is added to it.
func (r *Router) Launch(id string) Launch { return r.LaunchAs(id, 0) }

// LaunchAs is Launch with a PID of the caller's choice; 0 mints one. A live
// launch with another PID is ended first, as by a crash.
func (r *Router) LaunchAs(id string, pid uint32) Launch {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.roster[id]
	if m == nil {
		m = r.configure(ModuleConfig{ID: id})
	}
	if m.launch != nil {
		if pid == 0 || m.launch.PID == pid {
			return *m.launch
		}
		r.ended(m, exit{signal: ptr(int32(unix.SIGKILL)), asked: true})
	}
	m.enabled = true
	if err := r.start(m, pid); err != nil {
		return Launch{ModuleID: id}
	}
	return *m.launch
}

func ptr[T any](v T) *T { return &v }

// mint makes a launch of m and starts its process.
func (r *Router) mint(m *supervised, pid uint32, candidate bool) (*Launch, error) {
	l := &Launch{
		ModuleID: m.cfg.ID, Nonce: randomHex(32), PID: pid,
		Generation: m.generation + 1, Candidate: candidate,
	}
	if r.cfg.Spawner != nil {
		var err error
		if l.PID, err = r.cfg.Spawner.Spawn(*l, m.cfg); err != nil {
			return nil, fmt.Errorf("spawn %q: %w", m.cfg.ID, err)
		}
	} else if l.PID == 0 {
		l.PID = r.nextPID
		r.nextPID++
	}
	return l, nil
}

// start launches m as its current process.
func (r *Router) start(m *supervised, pid uint32) error {
	l, err := r.mint(m, pid, false)
	if err != nil {
		m.state = stateFailed
		return err
	}
	r.current(m, l)
	return nil
}

// current makes l the module's process: its nonce is the module's from now on.
func (r *Router) current(m *supervised, l *Launch) {
	m.launch, m.nonce, m.generation = l, l.Nonce, l.Generation
	m.state, m.spawnedMS = stateRunning, time.Now().UnixMilli()
	r.feed.emit(spawnEvent{Kind: "spawned", ModuleID: l.ModuleID, Generation: l.Generation, PID: l.PID})
	r.announce()
}

// announce wakes whoever waits in AwaitLaunch.
func (r *Router) announce() {
	close(r.spawned)
	r.spawned = make(chan struct{})
}

// AwaitLaunch waits for a launch of id other than after: a restart's, or a
// swap's candidate.
func (r *Router) AwaitLaunch(ctx context.Context, id string, after Launch) (Launch, error) {
	for {
		l, ok, wake := r.newest(id, after)
		if ok {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return Launch{}, fmt.Errorf("no new launch of %q: %w", id, context.Cause(ctx))
		case <-wake:
		}
	}
}

func (r *Router) newest(id string, after Launch) (Launch, bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.roster[id]
	if m != nil {
		if m.swap != nil && m.swap.candidate != nil && m.swap.candidate.Nonce != after.Nonce {
			return *m.swap.candidate, true, nil
		}
		if m.launch != nil && m.launch.Nonce != after.Nonce {
			return *m.launch, true, nil
		}
	}
	return Launch{}, false, r.spawned
}

// signal asks l's process to end. Without a Spawner there is none: it ends at
// once, of SIGTERM as a module that knows it does.
func (r *Router) signal(l Launch, sig unix.Signal, gone func(exit)) {
	if r.cfg.Spawner != nil {
		r.cfg.Spawner.Signal(l, sig)
		return
	}
	if sig == unix.SIGTERM {
		gone(exit{code: ptr(int32(0)), asked: true})
		return
	}
	gone(exit{signal: ptr(int32(sig)), asked: true})
}
