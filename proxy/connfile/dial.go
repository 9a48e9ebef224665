package connfile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"scopeward/proxy/handshake"
)

// Dial connects to the first endpoint of f that answers and authenticates as
// role, in at most [handshake.Timeout] and within ctx. The connection it returns
// has no deadline, and its next byte is a frame's.
//
// An endpoint that refuses the connection is passed over; one that fails the
// handshake is not: it is not the daemon the file names.
func Dial(ctx context.Context, f File, role string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake.Timeout)
	defer cancel()
	var failed []error
	for _, e := range f.Endpoints {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", e.Address())
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if err := authenticate(ctx, conn, f, role); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrNoEndpoint, errors.Join(failed...))
}

// Address is host and port as net.Dial takes them.
func (e Endpoint) Address() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

func authenticate(ctx context.Context, conn net.Conn, f File, role string) error {
	// The end of ctx, whichever it is, ends a read or write that is under way.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	_, err := handshake.Client(conn, f.Key, f.DaemonID, role)
	if !stop() {
		return fmt.Errorf("handshake with %s: %w", conn.RemoteAddr(), context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("handshake with %s: %w", conn.RemoteAddr(), err)
	}
	return nil
}
