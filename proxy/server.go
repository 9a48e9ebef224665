package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

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

// dialTimeout bounds the upstream connection and handshake of one session.
const dialTimeout = handshake.Timeout

// Server accepts connections, authenticates both sides of each, and hands them
// to its loops. It owns every goroutine of this package.
type Server struct {
	p    Params
	next atomic.Uint64 // ConnID
	turn atomic.Uint64 // client loops, in turn

	loops []*Loop
	slots chan struct{} // unauthenticated connections

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	pending   map[net.Conn]struct{} // in their handshake
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
		listeners: make(map[net.Listener]struct{}),
		pending:   make(map[net.Conn]struct{}),
		conns:     make(map[ConnID]*pair),
	}
	for range Loops {
		l, err := NewLoop()
		if err != nil {
			_ = s.Shutdown(context.Background())
			return nil, err
		}
		s.loops = append(s.loops, l)
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
		opens: make(map[string]*open),
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
	for c := range s.pending {
		_ = c.Close()
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

// Serve accepts connections from l until l or the server is closed. Several
// listeners may be served.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	var pause time.Duration
	for {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			s.accepted(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		// Out of descriptors or memory: they come back. Accepting goes on.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.p.Log.Warn("accept failed; trying again", zap.Error(err), zap.Duration("in", pause))
		if !s.wait(l, pause) {
			return nil
		}
	}
}

// wait waits, and reports whether the server still serves l.
func (s *Server) wait(l net.Listener, d time.Duration) bool {
	time.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.listeners[l]
	return ok
}

func (s *Server) accepted(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		_ = c.Close()
		return
	}
	select {
	case s.slots <- struct{}{}:
	default: // as the router does at its limit
		_ = c.Close()
		return
	}
	s.mu.Lock()
	w := s.world
	if s.closed || w == nil {
		s.mu.Unlock()
		<-s.slots
		_ = c.Close()
		return
	}
	s.pending[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		s.authenticate(w, tcp)
		_ = c.Close()
		s.mu.Lock()
		delete(s.pending, c)
		s.mu.Unlock()
		<-s.slots
	}()
}

// authenticate runs the handshake on both sides and starts the session.
func (s *Server) authenticate(w *World, c *net.TCPConn) {
	id := s.next.Add(1)
	s.p.Peers.Accepted(id, c)
	_ = c.SetDeadline(time.Now().Add(handshake.Timeout))
	hello, err := handshake.Server(c, handshake.Params{Key: s.p.Key, DaemonID: s.p.DaemonID, DaemonVer: w.up.DaemonVer})
	if err != nil {
		s.p.Log.Debug("handshake refused", zap.Uint64("conn", id), zap.Error(err))
		s.p.Peers.Closed(id)
		return
	}
	up, err := dial(w.up, hello.Role)
	if err != nil {
		s.p.Log.Warn("the router did not take a connection", zap.Uint64("conn", id), zap.Error(err))
		s.p.Peers.Closed(id)
		return
	}
	defer up.Close()
	s.start(id, w, c, up)
}

// dial opens and authenticates a session's upstream connection.
func dial(up Upstream, role string) (*net.TCPConn, error) {
	c, err := net.DialTimeout("tcp", up.Addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(dialTimeout))
	if _, err := handshake.Client(c, up.Key, up.DaemonID, role); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// start hands two authenticated sockets to a loop.
func (s *Server) start(id ConnID, w *World, down, up *net.TCPConn) {
	peer, err := detach(down)
	if err != nil {
		s.p.Peers.Closed(id)
		return
	}
	router, err := detach(up)
	if err != nil {
		unix.Close(peer)
		s.p.Peers.Closed(id)
		return
	}
	p := &pair{session: newSession(id, w), home: s.loops[0]}
	p.sides[toRouter] = side{pair: p, dir: toRouter, fd: peer}
	p.sides[toPeer] = side{pair: p, dir: toPeer, fd: router}
	p.done = func(reason string) {
		s.mu.Lock()
		delete(s.conns, id)
		s.mu.Unlock()
		s.p.Peers.Closed(id)
		s.p.Log.Debug("connection closed", zap.Uint64("conn", id), zap.String("why", reason))
	}
	l := s.loops[1+s.turn.Add(1)%(Loops-1)]
	p.loop.Store(l)
	s.mu.Lock()
	gone := s.closed || s.world != w
	if !gone {
		s.conns[id] = p
	}
	s.mu.Unlock()
	if gone || !l.post(func() { l.adopt(p) }) {
		p.session.End("the router is gone")
		unix.Close(peer)
		unix.Close(router)
		p.done("the router is gone")
	}
}

// detach takes a socket out of the runtime's hands. It stays non-blocking.
func detach(c *net.TCPConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(own uintptr) {
		fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return -1, err
	}
	return fd, dupErr
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
	for l := range s.listeners {
		_ = l.Close()
	}
	clear(s.listeners)
	for c := range s.pending {
		_ = c.Close()
	}
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
