package routertest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
)

// Router is a stub router. All its state is behind one lock, and nothing waits
// while it holds it.
type Router struct {
	cfg       Config
	file      connfile.File
	path      string // of the connection file, "" in memory
	dir       string // to remove at Close, or ""
	machineID string

	wg sync.WaitGroup // acceptors and connections

	mu         sync.Mutex
	change     *sync.Cond // on mu: something that a reader waits for has changed
	closed     bool
	listeners  []net.Listener
	conns      map[*conn]struct{}
	nextConn   uint64
	handshakes int // connections that have not authenticated

	registry    map[string]*registration // by module_id, what the catalog lists
	endpoints   map[string]*endpoint     // by module_id, where binds go
	generation  uint64                   // of the catalog
	breakers    map[string]*breaker
	targetBinds map[string]int // binds in flight by module_id

	roster  map[string]*supervised
	order   []string // the roster's, as configured
	nextPID uint32
	spawned chan struct{} // closed and replaced at every launch
	feed    feed
}

// NewRouter starts a stub router. The caller closes it.
func NewRouter(cfg Config) (*Router, error) {
	cfg = cfg.withDefaults()
	r := &Router{
		cfg:         cfg,
		machineID:   randomHex(16),
		conns:       map[*conn]struct{}{},
		registry:    map[string]*registration{},
		endpoints:   map[string]*endpoint{},
		breakers:    map[string]*breaker{},
		targetBinds: map[string]int{},
		roster:      map[string]*supervised{},
		nextPID:     firstPID,
		spawned:     make(chan struct{}),
		feed:        newFeed(cfg.SpawnRing),
	}
	r.change = sync.NewCond(&r.mu)
	r.file = connfile.File{
		Key:       random(handshake.MinKey),
		DaemonID:  random(handshake.DaemonIDLen),
		PID:       uint32(os.Getpid()),
		DaemonVer: cfg.Version,
	}
	if !cfg.InMemory {
		if err := r.listen(); err != nil {
			r.Close()
			return nil, fmt.Errorf("stub router: %w", err)
		}
	}
	if err := r.startRoster(); err != nil {
		r.Close()
		return nil, fmt.Errorf("stub router: %w", err)
	}
	return r, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

func randomHex(n int) string { return hex.EncodeToString(random(n)) }

func (r *Router) listen() error {
	l, err := net.Listen("tcp", r.cfg.Addr)
	if err != nil {
		return err
	}
	addr := l.Addr().(*net.TCPAddr)
	r.file.Endpoints = []connfile.Endpoint{{Host: addr.IP.String(), Port: uint16(addr.Port)}}
	r.Serve(l)
	r.path = r.cfg.Path
	if r.path == "" {
		if r.dir, err = os.MkdirTemp("", "routertest-"); err != nil {
			return err
		}
		r.path = filepath.Join(r.dir, connfile.Name)
	}
	return connfile.Publish(r.path, r.file)
}

// File is what the connection file holds. Its key is a secret.
func (r *Router) File() connfile.File { return r.file }

// Path is where the connection file is, or "" in memory.
func (r *Router) Path() string { return r.path }

// Serve accepts connections from l until the router or l is closed. It returns
// at once; Close closes l.
func (r *Router) Serve(l net.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		l.Close()
		return
	}
	r.listeners = append(r.listeners, l)
	r.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.ServeConn(nc) })
		}
	})
}

// ServeConn serves one connection, from its handshake to its end, and closes
// it.
func (r *Router) ServeConn(nc net.Conn) {
	defer nc.Close()
	if !r.enterHandshake() {
		return
	}
	nc.SetDeadline(time.Now().Add(handshake.Timeout))
	_, err := handshake.Server(nc, handshake.Params{
		Key: r.file.Key, DaemonID: r.file.DaemonID, DaemonVer: r.file.DaemonVer,
	})
	nc.SetDeadline(time.Time{})
	c := r.leaveHandshake(nc, err == nil)
	if c == nil {
		return
	}
	c.run()
}

func (r *Router) enterHandshake() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.handshakes >= handshake.MaxUnauthenticated {
		return false
	}
	r.handshakes++
	return true
}

func (r *Router) leaveHandshake(nc net.Conn, passed bool) *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handshakes--
	if !passed || r.closed {
		return nil
	}
	r.nextConn++
	c := newConn(r, r.nextConn, nc)
	r.conns[c] = struct{}{}
	return c
}

// Pipe returns one end of an in-memory connection whose other end is served.
func (r *Router) Pipe() net.Conn {
	near, far := net.Pipe()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		far.Close()
		return near
	}
	r.wg.Go(func() { r.ServeConn(far) })
	return near
}

// Close ends every connection and waits for them. The connection file is
// removed if it is still this router's.
func (r *Router) Close() {
	r.mu.Lock()
	r.closed = true
	r.change.Broadcast()
	for _, l := range r.listeners {
		l.Close()
	}
	for c := range r.conns {
		c.cut()
	}
	r.mu.Unlock()
	if r.path != "" {
		connfile.Remove(r.path, r.file)
	}
	r.wg.Wait()
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

// later runs do under the lock after d, unless the router is closed by then.
func (r *Router) later(d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.closed {
			do()
		}
	})
}
