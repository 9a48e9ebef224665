package bpf

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Socket is an accepted connection as the kernel names it.
type Socket struct {
	Cookie        uint64 // SO_COOKIE of our end; 0: it has none
	Local, Remote netip.AddrPort
}

// SocketOf names c, which has to be open.
func SocketOf(c *net.TCPConn) Socket {
	var s Socket
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			s.Cookie, _ = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE) // 0: unknown
		})
	}
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		s.Local = a.AddrPort()
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		s.Remote = a.AddrPort()
	}
	return s
}
