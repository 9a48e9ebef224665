package systemd

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// isListening tells a socket of the manager's from what was stored.
func isListening(f *os.File) bool {
	v, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && v == 1
}

// Listener is the socket that the manager listens on for us, nil when it does
// not. It must be one, of TCP, on a loopback address, and not multi-path: the
// error is [ErrListener] else.
func (m *Manager) Listener() (*net.TCPListener, error) {
	switch len(m.sockets) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("%w: there are %d of them, and one is wanted", ErrListener, len(m.sockets))
	}
	proto, err := unix.GetsockoptInt(int(m.sockets[0].Fd()), unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err == nil && proto == unix.IPPROTO_MPTCP {
		return nil, fmt.Errorf("%w: it is of multi-path TCP, whose callers are not seen", ErrListener)
	}
	l, err := net.FileListener(m.sockets[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListener, err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("%w: it is of %s, and TCP is wanted", ErrListener, l.Addr().Network())
	}
	if !tcp.Addr().(*net.TCPAddr).IP.IsLoopback() {
		tcp.Close()
		return nil, fmt.Errorf("%w: others can reach %s, and a loopback address is wanted", ErrListener, tcp.Addr())
	}
	m.sockets[0].Close()
	m.sockets = nil
	return tcp, nil
}
