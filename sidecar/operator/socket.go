package operator

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// socketMode is the operator socket's: whoever is not its owner or root can't
	// connect.
	socketMode = 0o600
	// peersAtOnce is how many connections the API takes at once. One more is closed.
	peersAtOnce = 64
)

// Listen opens the operator socket. A dead one in its place is replaced; one that
// answers is not: that is a [SocketError] of [ErrSocketTaken].
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, &SocketError{path, "its folder can't be created: " + cause(err), "create it with mode 0700", err}
	}
	if err := vacate(ctx, path); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// The file takes its mode from the socket when it is bound: it is never open
		// to others, not even for a moment.
		var chmod error
		if err := c.Control(func(fd uintptr) { chmod = unix.Fchmod(int(fd), socketMode) }); err != nil {
			return err
		}
		return chmod
	}}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, &SocketError{path, "can't be listened on: " + cause(err), "choose another path, or correct the folder's permissions", err}
	}
	return l, nil
}

// vacate removes a dead socket from path.
func vacate(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &SocketError{path, "can't be looked at: " + cause(err), "correct the folder's permissions", err}
	case info.Mode().Type() != fs.ModeSocket:
		return &SocketError{path, "is there and is no socket", "move it away, or choose another path", fs.ErrExist}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return &SocketError{path, ErrSocketTaken.Error(), "stop it, or choose another path", ErrSocketTaken}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return &SocketError{path, "another process holds it: " + cause(err), "stop it, or choose another path", ErrSocketTaken}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &SocketError{path, "a dead socket there can't be removed: " + cause(err), "remove it", err}
	}
	return nil
}

// cause is an error without the path or the address that is named already.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// peers lets in whoever the operator API is for: the same user, and root.
type peers struct {
	net.Listener
	log    *zap.Logger
	user   uint32
	inside atomic.Int64
}

// peerConn is a connection whose other end is known.
type peerConn struct {
	net.Conn
	cred  unix.Ucred
	leave func()
}

func (c *peerConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Accept implements [net.Listener]. Strangers are closed and logged.
func (l *peers) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		cred, err := credentials(c)
		switch {
		case err != nil:
			l.log.Warn("a peer of the operator socket is not known", zap.Error(err))
		case cred.Uid != l.user && cred.Uid != 0:
			l.log.Warn("a peer of the operator socket is another user",
				zap.Uint32("uid", cred.Uid), zap.Int32("pid", cred.Pid))
		case l.inside.Add(1) > peersAtOnce:
			l.inside.Add(-1)
		default:
			return &peerConn{c, *cred, sync.OnceFunc(func() { l.inside.Add(-1) })}, nil
		}
		c.Close()
	}
}

// credentials are those of the process that connected, as the kernel noted them
// at the connect.
func credentials(c net.Conn) (*unix.Ucred, error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var getErr error
	if err := raw.Control(func(fd uintptr) {
		cred, getErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, getErr
}
