package main

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// patience bounds every read and write of the load, in seconds. A world that
// stops answering fails its measurement and no more.
const patience = 10

// socket is a blocking TCP socket used from one thread. It bypasses the
// runtime's poller, which reads twice a message and wakes a second thread.
type socket struct{ fd int }

// dialTCP connects to a loopback port.
func dialTCP(port int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s := &socket{fd: fd}
	if err := s.connect(port); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) connect(port int) error {
	limit := unix.Timeval{Sec: patience}
	for _, opt := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, opt, &limit); err != nil {
			return fmt.Errorf("set a socket's timeout: %w", err)
		}
	}
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set no delay: %w", err)
	}
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	err := unix.Connect(s.fd, to)
	for err == unix.EINTR { // the connection goes on being made, and this waits for it
		err = unix.Connect(s.fd, to)
	}
	if err != nil && err != unix.EISCONN {
		return fmt.Errorf("connect to port %d: %w", port, err)
	}
	return nil
}

// Read reads what has arrived, waiting for at least one byte.
func (s *socket) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(s.fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, errIdle
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Write writes all of b.
func (s *socket) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(s.fd, b[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, fmt.Errorf("write: %w", err)
		}
		done += n
	}
	return done, nil
}

// Hangup ends both directions. A read that waits in another thread returns.
func (s *socket) Hangup() { _ = unix.Shutdown(s.fd, unix.SHUT_RDWR) }

// Close gives the descriptor back. No read may be waiting.
func (s *socket) Close() error { return unix.Close(s.fd) }
