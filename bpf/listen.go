package bpf

import (
	"context"
	"net"
)

// ListenTCP listens with multi-path TCP off, which Go turns on by default. On a
// multi-path listener the accepted socket is a shell around the connection and
// has a cookie that no hook ever saw: a client that asked for multi-path TCP would
// be unknown. With it off the kernel falls back to plain TCP for that client.
func ListenTCP(ctx context.Context, addr string) (*net.TCPListener, error) {
	lc := net.ListenConfig{KeepAlive: -1} // a loopback peer that is gone says so
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}
