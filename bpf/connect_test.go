package bpf

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// connectKinds are the ways to connect that a client can choose from. six kinds
// need an IPv6 listener.
var connectKinds = []struct {
	name string
	six  bool
}{
	{name: "v4"}, {name: "v4-nonblocking"}, {name: "v4-to-any"},
	{name: "v6", six: true}, {name: "v6-nonblocking", six: true},
	{name: "mapped"}, {name: "mapped-nonblocking"},
	{name: "mptcp"}, {name: "mptcp-nonblocking"}, {name: "mptcp-v6", six: true},
	{name: "go"}, {name: "uring"}, {name: "uring-worker"},
}

// connectAs connects in one of those ways. A non-blocking one may still be under
// way when it returns.
func connectAs(kind, addr, source string) (int, error) {
	family, proto, flags, mapped := unix.AF_INET, 0, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, false
	nonblocking := false
	switch kind {
	case "go":
		return dialGo(addr)
	case "v4", "uring", "uring-worker", "fastopen":
	case "v4-nonblocking":
		nonblocking = true
	case "v4-to-any":
		ap, err := netip.ParseAddrPort(addr)
		if err != nil {
			return -1, err
		}
		addr = netip.AddrPortFrom(netip.IPv4Unspecified(), ap.Port()).String()
	case "v6":
		family = unix.AF_INET6
	case "v6-nonblocking":
		family, nonblocking = unix.AF_INET6, true
	case "mapped":
		family, mapped = unix.AF_INET6, true
	case "mapped-nonblocking":
		family, mapped, nonblocking = unix.AF_INET6, true, true
	case "mptcp":
		proto = unix.IPPROTO_MPTCP
	case "mptcp-nonblocking":
		proto, nonblocking = unix.IPPROTO_MPTCP, true
	case "mptcp-v6":
		family, proto = unix.AF_INET6, unix.IPPROTO_MPTCP
	default:
		return -1, fmt.Errorf("no such kind: %s", kind)
	}
	if nonblocking {
		flags |= unix.SOCK_NONBLOCK
	}
	fd, err := unix.Socket(family, flags, proto)
	if err != nil {
		return -1, err
	}
	if source != "" {
		sa, err := sockaddr(source, mapped)
		if err != nil {
			return -1, err
		}
		if err := unix.Bind(fd, sa); err != nil {
			return -1, err
		}
	}
	sa, err := sockaddr(addr, mapped)
	if err != nil {
		return -1, err
	}
	switch kind {
	case "uring":
		return fd, uringConnect(fd, addr, false)
	case "uring-worker":
		return fd, uringConnect(fd, addr, true)
	case "fastopen":
		return fd, unix.Sendto(fd, []byte("hello"), unix.MSG_FASTOPEN, sa)
	}
	err = unix.Connect(fd, sa)
	if err == unix.EINPROGRESS && nonblocking {
		err = nil
	}
	if err != nil {
		return fd, fmt.Errorf("connect: %w", err)
	}
	return fd, nil
}

func dialGo(addr string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return -1, err
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.Dup(int(f.Fd()))
}

// waitConnected waits until a connect is over, and says how it went.
func waitConnected(fd int) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for {
		n, err := unix.Poll(fds, 60_000)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.ETIMEDOUT
		}
		break
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if code != 0 {
		return unix.Errno(code)
	}
	return nil
}

func sockaddr(addr string, mapped bool) (unix.Sockaddr, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	if ap.Addr().Is4() && !mapped {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}, nil
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}, nil
}
