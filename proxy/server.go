package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy/handshake"
	"scopeward/table"
)

// Params is what a server is made of. Every field is required but Now, Tombstones
// and Journal.
type Params struct {
	Log             *zap.Logger
	Peers           Peers
	Launches        Launches
	Recorder        Recorder
	Now             func() int64 // Unix milliseconds, wall clock; nil is the machine's
	Key             []byte       // our own, secret
	DaemonID        []byte       // our own, 16 bytes
	AuthorityOwners []string     // module ids whose scopes may grant authority (section 2)
	Tombstones      table.TombstoneReader
	Journal         Journal
}

// Loops is how many loops a server runs. The first takes the sessions of
// modules, the others share those of clients: an opener and its module never
// wait for one another's thread.
const Loops = 3

// sweepEvery is how often a world's deadlines are looked at. The contract says
// at most one second apart.
const sweepEvery = 900 * time.Millisecond

// Server accepts connections, authenticates both sides of each, and hands them
// to its loops. It owns every goroutine of this package.
type Server struct {
	p    Params
	next atomic.Uint64 // ConnID

	loops []*Loop
	slots chan struct{} // connections that have no session yet

	mu        sync.Mutex
	closed    bool
	greetings map[*greeting]struct{} // in the slots
	world     *World
	conns     map[ConnID]*pair
	sweeper   context.CancelFunc

	wg sync.WaitGroup
}

// NewServer makes a server and starts its loops. [Server.Shutdown] ends it.
func NewServer(p Params) (*Server, error) {
	if p.Now == nil {
		p.Now = func() int64 { return time.Now().UnixMilli() }
	}
	s := &Server{
		p:         p,
		slots:     make(chan struct{}, handshake.MaxUnauthenticated),
		greetings: make(map[*greeting]struct{}),
		conns:     make(map[ConnID]*pair),
	}
	for range Loops {
		l, err := NewLoop()
		if err != nil {
			_ = s.Shutdown(context.Background())
			return nil, err
		}
		s.loops = append(s.loops, l)
	}
	for _, l := range s.loops {
		l.all = s.loops
		s.wg.Go(l.Run)
	}
	return s, nil
}

// Attach says that the router is there: sessions accepted from now on belong to
// a new world, with an empty table under incarnation.
func (s *Server) Attach(up Upstream, incarnation string) *World {
	cfg := table.Config{Incarnation: incarnation, AuthorityOwners: s.p.AuthorityOwners, Tombstones: s.p.Tombstones}
	if s.p.Journal != nil {
		cfg.Journal = s.p.Journal
	}
	w := &World{
		Table:       table.New(cfg),
		Incarnation: incarnation,
		up:          up, pass: up.Pass,
		log: s.p.Log, launches: s.p.Launches, recorder: s.p.Recorder, journal: s.p.Journal, now: s.p.Now,
		post: s.post, work: s.work,
		opens:  make(map[string]*open),
		spares: newSpares(up),
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeper != nil {
		s.sweeper()
	}
	s.world, s.sweeper = w, cancel
	if s.closed {
		cancel()
		return w
	}
	s.wg.Go(func() { sweep(ctx, w) })
	s.wg.Go(func() { w.follow(ctx) })
	s.wg.Go(func() { w.spares.fill(ctx, s.p.Log) })
	return w
}

func sweep(ctx context.Context, w *World) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Sweep()
		}
	}
}

// Detach says that the router is gone: every session is closed and its world
// forgotten.
func (s *Server) Detach() {
	s.mu.Lock()
	if s.sweeper != nil {
		s.sweeper()
		s.sweeper = nil
	}
	s.world = nil
	for g := range s.greetings {
		g.loop.post(func() { g.loop.dismiss(g, "the router is gone") })
	}
	s.mu.Unlock()
	s.cutAll("the router is gone")
}

// World is the current one, nil while the router is gone.
func (s *Server) World() *World {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world
}

// pair makes a session of a greeting's two authenticated sockets, or nothing when
// their world is gone.
func (s *Server) pair(g *greeting) *pair {
	p := &pair{session: newSession(g.id, g.world), home: s.loops[0]}
	p.sides[toRouter] = side{pair: p, dir: toRouter, fd: g.fd}
	p.sides[toPeer] = side{pair: p, dir: toPeer, fd: g.up}
	p.done = func(reason string) {
		s.mu.Lock()
		delete(s.conns, g.id)
		s.mu.Unlock()
		s.p.Peers.Closed(g.id)
		s.p.Log.Debug("connection closed", zap.Uint64("conn", g.id), zap.String("why", reason))
	}
	p.loop.Store(g.loop)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.world != g.world {
		p.session.End("the router is gone")
		return nil
	}
	delete(s.greetings, g)
	<-s.slots
	s.conns[g.id] = p
	return p
}

// post gives a session an event, on its loop's thread. For one that is gone it
// does nothing.
func (s *Server) post(id ConnID, e Event) { s.postOr(id, e, func() {}) }

// postOr is post, and calls gone when the session ended before the event
// reached it. It returns false when there is none already.
func (s *Server) postOr(id ConnID, e Event, gone func()) bool {
	s.mu.Lock()
	p := s.conns[id]
	s.mu.Unlock()
	if p == nil {
		return false
	}
	l := p.loop.Load()
	if _, ok := e.(feedEvent); ok {
		return l.postIdle(func() { l.handle(p, e, gone) })
	}
	return l.post(func() { l.handle(p, e, gone) })
}

// work runs a job on a goroutine of its own.
func (s *Server) work(job func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(job)
	}
}

// Cut closes one pair of connections at once.
func (s *Server) Cut(id ConnID, reason string) { s.post(id, cutEvent{reason}) }

func (s *Server) cutAll(reason string) {
	s.mu.Lock()
	ids := make([]ConnID, 0, len(s.conns))
	for id := range s.conns {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.Cut(id, reason)
	}
}

// Shutdown stops accepting, closes every session and waits for every goroutine
// of the server, or for ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	if s.sweeper != nil {
		s.sweeper()
		s.sweeper = nil
	}
	s.mu.Unlock()
	for _, l := range s.loops {
		l.Close()
	}
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
