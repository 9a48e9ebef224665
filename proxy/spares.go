package proxy

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/handshake"
)

// dialTimeout bounds an upstream connection and its handshake.
const dialTimeout = handshake.Timeout

// dial opens and authenticates an upstream connection. What it returns is a
// non-blocking descriptor of the caller's.
func dial(up Upstream, role string) (int, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	c, err := d.Dial("tcp", up.Addr)
	if err != nil {
		return -1, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialTimeout))
	if _, err := handshake.Client(c, up.Key, up.DaemonID, role); err != nil {
		return -1, err
	}
	return detach(c.(syscall.Conn))
}

// detach takes a socket out of the runtime's hands. It stays non-blocking.
func detach(c syscall.Conn) (int, error) {
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

// maxSpares is how many authenticated connections to the router wait for a peer,
// and minSpares how many are left when more are made. A storm of more peers than
// that dials for itself.
const (
	maxSpares = 4
	minSpares = 1
)

// spares are upstream connections that were opened and authenticated before a
// peer asked for one, so that a peer waits for one handshake and not for two.
// The router sees a client that has not spoken yet. Nobody who has not
// authenticated is given one, and other roles than a client's have none.
//
// One goroutine fills them from the first peer on, for as long as their world is
// served.
type spares struct {
	up   Upstream
	low  chan struct{} // one was asked for
	mu   sync.Mutex
	kept []int
	over bool
}

func newSpares(up Upstream) *spares {
	return &spares{up: up, low: make(chan struct{}, 1)}
}

// take returns a spare connection that still stands, or false when there is
// none. It does not block.
func (s *spares) take(role string) (int, bool) {
	if role != handshake.RoleClient {
		return -1, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.look()
	for n := len(s.kept); n > 0; n = len(s.kept) {
		fd := s.kept[n-1]
		s.kept = s.kept[:n-1]
		var b [1]byte
		if _, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); err == unix.EAGAIN {
			return fd, true
		}
		unix.Close(fd) // the router has closed it
	}
	return -1, false
}

// look has more spares made when few are left.
func (s *spares) look() {
	if len(s.kept) > minSpares {
		return
	}
	select {
	case s.low <- struct{}{}:
	default:
	}
}

// fill keeps spares at hand until ctx ends, and then closes them. After a dial
// that fails it waits for the next peer, whose own dial says what is wrong.
func (s *spares) fill(ctx context.Context, log *zap.Logger) {
	defer s.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.low:
		}
		for ctx.Err() == nil && s.wants() {
			fd, err := dial(s.up, handshake.RoleClient)
			if err != nil {
				log.Debug("no spare connection to the router", zap.Error(err))
				break
			}
			s.keep(fd)
		}
	}
}

func (s *spares) wants() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) < maxSpares
}

func (s *spares) keep(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		unix.Close(fd)
		return
	}
	s.kept = append(s.kept, fd)
}

func (s *spares) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, fd := range s.kept {
		unix.Close(fd)
	}
	s.kept = nil
}
