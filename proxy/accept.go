package proxy

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/handshake"
)

// ear is a listening socket. Its loop accepts from it: a peer waits for one
// thread to wake and not for two.
type ear struct {
	server  *Server
	fd      int
	resting bool // out of descriptors or memory
	until   time.Time
}

// acceptsInARow is how many connections are accepted before the loop looks at
// its sockets.
const acceptsInARow = 16

// restFor is how long nothing is accepted when there is nothing to accept with.
const restFor = 100 * time.Millisecond

// Serve accepts connections from l until [Server.Deafen] or [Server.Shutdown].
// It takes l over, whatever it returns, and returns at once. Several listeners
// may be served.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	tcp, ok := l.(syscall.Conn)
	if !ok {
		return net.UnknownNetworkError(l.Addr().Network())
	}
	fd, err := detach(tcp)
	if err != nil {
		return err
	}
	e, on := &ear{server: s, fd: fd}, s.loops[1]
	if !on.post(func() { on.hear(e) }) {
		unix.Close(fd)
		return net.ErrClosed
	}
	return nil
}

// Deafen stops accepting. Sessions go on. It returns when nobody can connect any
// more.
func (s *Server) Deafen() {
	done := make(chan struct{})
	on := s.loops[1]
	if on.post(func() { on.deafen(); close(done) }) {
		<-done
	}
}

func (l *Loop) hear(e *ear) {
	l.ears[int32(e.fd)] = e
	l.listen(e, unix.EPOLL_CTL_ADD)
}

// listen asks for news of e as long as there is any, so that a loop which accepts
// a few at a time comes back for the rest.
func (l *Loop) listen(e *ear, how int) {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(e.fd)}
	if e.resting {
		ev.Events = 0
	}
	if err := unix.EpollCtl(l.poll, how, e.fd, &ev); err != nil {
		e.server.p.Log.Error("connections can't be waited for", zap.Error(err))
	}
}

func (l *Loop) deafen() {
	for fd, e := range l.ears {
		delete(l.ears, fd)
		unix.Close(e.fd)
	}
}

// accept takes the connections that wait at e.
func (l *Loop) accept(e *ear) {
	for range acceptsInARow {
		fd, from, err := unix.Accept4(e.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			l.accepted(e.server, fd, from)
		case unix.EAGAIN:
			return
		case unix.EINTR, unix.ECONNABORTED:
		default: // out of descriptors or memory: they come back
			e.server.p.Log.Warn("accept failed; trying again", zap.Error(err), zap.Duration("in", restFor))
			l.rest(e)
			return
		}
	}
}

func (l *Loop) rest(e *ear) {
	e.resting, e.until = true, time.Now().Add(restFor)
	l.listen(e, unix.EPOLL_CTL_MOD)
}

// runEars listens again where it had to rest.
func (l *Loop) runEars() {
	for _, e := range l.ears {
		if e.resting && !time.Now().Before(e.until) {
			e.resting = false
			l.listen(e, unix.EPOLL_CTL_MOD)
		}
	}
}

// resting reports whether an ear waits to listen again.
func (l *Loop) resting() bool {
	for _, e := range l.ears {
		if e.resting {
			return true
		}
	}
	return false
}

// accepted starts a connection's handshake, unless too many are in theirs, and
// has its peer attributed meanwhile.
func (l *Loop) accepted(s *Server, fd int, from unix.Sockaddr) {
	select {
	case s.slots <- struct{}{}:
	default: // as the router does at its limit
		unix.Close(fd)
		return
	}
	s.mu.Lock()
	w := s.world
	if s.closed || w == nil {
		s.mu.Unlock()
		<-s.slots
		unix.Close(fd)
		return
	}
	g := &greeting{
		server: s, world: w, id: s.next.Add(1), fd: fd, up: -1,
		loop: s.place(l),
		hand: handshake.NewGreeting(handshake.Params{Key: s.p.Key, DaemonID: s.p.DaemonID, DaemonVer: w.up.DaemonVer}),
		due:  time.Now().Add(handshake.Timeout),
	}
	g.loop.load.Add(1)
	sock := socketOf(fd, from)
	s.greetings[g] = struct{}{}
	s.wg.Go(func() { s.attribute(g, sock) })
	s.mu.Unlock()
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // slower without, and no worse
	if g.loop == l {
		l.welcome(g)
	} else if !g.loop.post(func() { g.loop.welcome(g) }) {
		g.end()
	}
}

// place is the loop of clients with the fewest connections, l among equals: it
// is awake.
func (s *Server) place(l *Loop) *Loop {
	for _, other := range s.loops[1:] {
		if other.load.Load() < l.load.Load() {
			l = other
		}
	}
	return l
}

// socketOf names an accepted connection.
func socketOf(fd int, from unix.Sockaddr) Socket {
	s := Socket{Remote: addrPort(from)}
	s.Cookie, _ = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE) // 0: unknown
	if local, err := unix.Getsockname(fd); err == nil {
		s.Local = addrPort(local)
	}
	return s
}

// addrPort is the zero value for what is no TCP address.
func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// attribute learns who a greeting's peer is.
func (s *Server) attribute(g *greeting, sock Socket) {
	s.p.Peers.Accepted(g.id, sock)
	s.mu.Lock()
	g.known = true
	over, waits := g.over, g.waits
	s.mu.Unlock()
	if over {
		g.leave()
	} else if waits {
		g.loop.post(func() { g.loop.begin(g) })
	}
}
