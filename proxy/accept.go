package proxy

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/handshake"
)

// ear is a listening socket. Its loop accepts from it: a peer waits for one
// thread to wake and not for two.
type ear struct {
	server  *Server
	fd      int
	heard   bool // somebody wants to connect
	resting bool // nothing is accepted meanwhile
	until   time.Time

	since time.Time // when it last accepted
	seen  uint64    // the calls then
}

// acceptsInARow is how many connections are accepted before the loop looks at
// its sockets.
const acceptsInARow = 16

// acceptEvery is how long it takes from one connection to the next while calls are
// relayed: a handshake keeps three processes busy, and so do those who say no more.
const acceptEvery = 2 * time.Millisecond

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
	l.ears = append(l.ears, e)
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
	for _, e := range l.ears {
		// The service manager may hold the socket too: closing alone would not end it.
		_ = unix.EpollCtl(l.poll, unix.EPOLL_CTL_DEL, e.fd, nil) // it is there
		unix.Close(e.fd)
	}
	l.ears = nil
}

// accept takes the connections that wait at e.
func (l *Loop) accept(e *ear) {
	now, calls, n := time.Now(), l.allCalls(), acceptsInARow
	if calls != e.seen {
		if soon := e.since.Add(acceptEvery); now.Before(soon) {
			l.hasten(now)
			l.rest(e, soon)
			return
		}
		n = 1
	}
	e.since, e.seen = now, calls
	for range n {
		fd, from, err := acceptFrom(e.fd)
		switch err {
		case nil:
			l.accepted(e.server, fd, from)
		case unix.EAGAIN:
			return
		case unix.EINTR, unix.ECONNABORTED:
		default: // out of descriptors or memory: they come back
			e.server.p.Log.Warn("accept failed; trying again", zap.Error(err), zap.Duration("in", restFor))
			l.rest(e, now.Add(restFor))
			return
		}
	}
}

func (l *Loop) rest(e *ear, until time.Time) {
	e.resting, e.until = true, until
	l.listen(e, unix.EPOLL_CTL_MOD)
}

// runEars accepts, when those who left have been seen off, and listens again where
// it had to rest.
func (l *Loop) runEars() {
	for _, e := range l.ears {
		if e.heard {
			e.heard = false
			l.accept(e)
		}
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

// accepted starts a connection's handshake, unless too many are in theirs.
func (l *Loop) accepted(s *Server, fd int, from netip.AddrPort) {
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
		loop: s.place(l), socket: socketOf(fd, from),
		hand: handshake.NewGreeting(handshake.Params{Key: s.p.Key, DaemonID: s.p.DaemonID, DaemonVer: w.up.DaemonVer}),
		due:  time.Now().Add(handshake.Timeout),
	}
	g.loop.load.Add(1)
	s.greetings[g] = struct{}{}
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

// acceptFrom and socketOf go to the kernel by themselves: the library asks it for
// more with every address.
func acceptFrom(listener int) (int, netip.AddrPort, error) {
	var a unix.RawSockaddrAny
	n := uint32(unsafe.Sizeof(a))
	fd, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&n)),
		unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, netip.AddrPort{}, errno
	}
	return int(fd), addrPort(&a), nil
}

// socketOf names an accepted connection.
func socketOf(fd int, from netip.AddrPort) Socket {
	s := Socket{Remote: from}
	s.Cookie, _ = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE) // 0: unknown
	var a unix.RawSockaddrAny
	n := uint32(unsafe.Sizeof(a))
	if _, _, errno := unix.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&n))); errno == 0 {
		s.Local = addrPort(&a)
	}
	return s
}

// addrPort is the zero value for what is no TCP address.
func addrPort(a *unix.RawSockaddrAny) netip.AddrPort {
	switch a.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), ntohs(in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr), ntohs(in.Port))
	}
	return netip.AddrPort{}
}

func ntohs(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}
