package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/config"
	"scopeward/sidecar/router"
)

// fakeRouter has a roster, a spawn feed and verdicts of the test's choice.
type fakeRouter struct {
	mu        sync.Mutex
	roster    []string
	silent    bool // it does not answer for the roster
	lists     int
	since     []router.Cursor // of every subscription
	seq       uint64
	live      map[string]router.Spawn
	genuine   map[string]bool // module + nonce
	unknown   int             // so many probes tell nothing
	probes    int
	inFlight  int
	most      int           // probes in flight at once
	takes     time.Duration // one probe or list
	events    []router.Event
	subs      []*fakeFeed
	broken    bool           // the link is gone
	dropped   uint64         // events up to here are no longer retained
	stale     string         // what a cursor among them is refused with
	elsewhere map[string]int // modules registered straight at the router: how often it is asked until they go
	snaps     int
}

func newFakeRouter() *fakeRouter {
	return &fakeRouter{live: map[string]router.Spawn{}, genuine: map[string]bool{}, elsewhere: map[string]int{}}
}

func (r *fakeRouter) Modules(ctx context.Context) ([]router.Module, error) {
	r.mu.Lock()
	r.lists++
	silent, takes := r.silent, r.takes
	var ms []router.Module
	for _, id := range r.roster {
		ms = append(ms, router.Module{ID: id})
	}
	r.mu.Unlock()
	<-time.After(takes)
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return ms, nil
}

func (r *fakeRouter) SpawnSnapshot(context.Context) (router.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snaps++
	s := router.Snapshot{Cursor: router.Cursor{Seq: r.seq}}
	for _, l := range r.live {
		s.Live = append(s.Live, l)
	}
	return s, nil
}

func (r *fakeRouter) Attest(_ context.Context, id, nonce string) (router.Verdict, error) {
	r.mu.Lock()
	r.probes++
	r.inFlight++
	r.most = max(r.most, r.inFlight)
	takes := r.takes
	r.mu.Unlock()
	<-time.After(takes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	if r.unknown > 0 {
		r.unknown--
		return router.Unknown, nil
	}
	if r.genuine[id+" "+nonce] {
		return router.Genuine, nil
	}
	return router.Foreign, nil
}

func (r *fakeRouter) Registered(_ context.Context, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.elsewhere[id] == 0 {
		return false, nil
	}
	r.elsewhere[id]--
	return true, nil
}

func (r *fakeRouter) subscribe(since router.Cursor) (Feed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = append(r.since, since)
	f := &fakeFeed{events: make(chan router.Event, 64), ends: make(chan error, 1)}
	switch {
	case r.broken:
		return nil, router.ErrClosed
	case since.Seq < r.dropped:
		f.ends <- &router.RefusedError{Code: r.stale}
		return f, nil
	}
	for _, e := range r.events {
		if e.Cursor.Seq > since.Seq {
			f.events <- e
		}
	}
	r.subs = append(r.subs, f)
	return f, nil
}

// spawn launches a module: the event and the snapshot change together.
func (r *fakeRouter) spawn(id string, generation uint64, pid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[id] = router.Spawn{ModuleID: id, Generation: generation, PID: pid}
	r.emit(router.Event{Kind: router.Spawned, ModuleID: id, Generation: generation, PID: pid})
}

// exit ends a launch. A superseded one is in no snapshot.
func (r *fakeRouter) exit(id string, generation uint64, pid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[id].Generation == generation {
		delete(r.live, id)
	}
	r.emit(router.Event{Kind: router.Exited, ModuleID: id, Generation: generation, PID: pid})
}

func (r *fakeRouter) emit(e router.Event) {
	r.seq++
	e.Cursor.Seq = r.seq
	r.events = append(r.events, e)
	for _, f := range r.subs {
		f.events <- e
	}
}

// cutFeeds ends every subscription with err.
func (r *fakeRouter) cutFeeds(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.subs {
		f.ends <- err
	}
	r.subs = nil
}

func (r *fakeRouter) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// knows makes nonces those of living launches of a module.
func (r *fakeRouter) knows(id string, nonces ...string) {
	r.set(func() {
		for _, n := range nonces {
			r.genuine[id+" "+n] = true
		}
	})
}

type fakeFeed struct {
	events chan router.Event
	ends   chan error
}

func (f *fakeFeed) Next(ctx context.Context) (router.Event, error) {
	select {
	case e := <-f.events:
		return e, nil
	default:
	}
	select {
	case e := <-f.events:
		return e, nil
	case err := <-f.ends:
		return router.Event{}, err
	case <-ctx.Done():
		return router.Event{}, ctx.Err()
	}
}

func (f *fakeFeed) Close() {}

// fakeProcesses is a process tree of the test's choice. Connections are given
// their process by connect.
type fakeProcesses struct {
	mu      sync.Mutex
	running map[uint32]Process
	parents map[uint32]uint32
}

func (f *fakeProcesses) Waits() bool                         { return false }
func (f *fakeProcesses) Peer(proxy.Socket) (Process, func()) { panic("connect gives the process") }

func (f *fakeProcesses) Lookup(pid uint32) (Process, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.running[pid]
	return p, ok
}

func (f *fakeProcesses) Parent(p Process) (Process, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running[p.PID].Same(p) {
		return Process{}, false
	}
	parent, ok := f.running[f.parents[p.PID]]
	return parent, ok
}

// fork starts a process. The start time follows from the count of forks: no two
// processes are the same.
func (f *fakeProcesses) fork(pid, parent uint32) Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := Process{PID: pid, Start: uint64(1000 + len(f.parents)), Exe: fmt.Sprintf("/bin/p%d", pid)}
	f.running[pid], f.parents[pid] = p, parent
	return p
}

const routerPID = 7

// rig is a table in front of a fake router.
type rig struct {
	*Table
	t         *testing.T
	router    *fakeRouter
	processes *fakeProcesses

	mu      sync.Mutex
	cuts    []proxy.ConnID
	reports []Mismatch
}

// newRig attaches a table. The caller detaches it: bubbles must be empty.
func newRig(t *testing.T, mode config.AttributionMode, change ...func(*Params, *Link)) *rig {
	t.Helper()
	r := &rig{t: t, router: newFakeRouter()}
	r.processes = &fakeProcesses{running: map[uint32]Process{}, parents: map[uint32]uint32{}}
	r.processes.fork(routerPID, 1)
	p := Params{
		Log: zap.NewNop(), Mode: mode, Match: config.MatchTree,
		Report: func(m Mismatch) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reports = append(r.reports, m)
		},
	}
	if mode != config.AttributionOff {
		p.Attributor = r.processes
	}
	l := Link{Router: r.router, Subscribe: r.router.subscribe, PID: routerPID}
	for _, c := range change {
		c(&p, &l)
	}
	r.Table = New(p)
	require.NoError(t, r.Attach(t.Context(), l, func(id proxy.ConnID, _ string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cuts = append(r.cuts, id)
	}))
	return r
}

func (r *rig) cutConns() []proxy.ConnID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.cuts))
}

func (r *rig) reported() []Mismatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reports)
}

// connect says which process opened a connection.
func (r *rig) connect(id proxy.ConnID, p Process) {
	r.Table.mu.Lock()
	defer r.Table.mu.Unlock()
	r.peers[id] = held{p, func() {}}
}

func (r *rig) ask(q proxy.Question) proxy.Answer {
	answer := make(chan proxy.Answer, 2)
	r.Ask(q, func(a proxy.Answer) { answer <- a })
	return <-answer
}

func (r *rig) standing(id proxy.ConnID) proxy.Answer {
	return r.ask(proxy.Question{Kind: proxy.AskStanding, Conn: id})
}

func (r *rig) configured(id string) bool {
	return r.ask(proxy.Question{Kind: proxy.AskRoster, ModuleID: id}).Configured
}

func (r *rig) hello(id proxy.ConnID, module, nonce string) proxy.Answer {
	return r.ask(proxy.Question{Kind: proxy.AskHello, Conn: id, ModuleID: module, Nonce: nonce})
}

func (r *rig) identity(id proxy.ConnID, module, nonce string) proxy.Answer {
	return r.ask(proxy.Question{Kind: proxy.AskIdentity, Conn: id, ModuleID: module, Nonce: nonce})
}

var errFeed = errors.New("the feed broke")
