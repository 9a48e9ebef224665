package bpf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// SelfProbe connects to a listener of our own, over IPv4 and over IPv6 where the
// host has them, and sees whether we are named. It is how programs that were
// detached behind our back are noticed. The error is [ErrNotAttributed] when we
// are not named, and the context's or the network's when the probe could not be
// made.
func (a *Attributor) SelfProbe(ctx context.Context) error {
	if a.hooks != nil {
		if name := a.hooks.detached(); name != "" {
			return fmt.Errorf("%w: %s is detached", ErrNotAttributed, name)
		}
	}
	probed := 0
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := ListenTCP(ctx, addr)
		if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("self-probe: %w", err)
		}
		if err := a.probe(ctx, l); err != nil {
			return err
		}
		probed++
	}
	if probed == 0 {
		return errors.New("self-probe: there is no loopback address")
	}
	return nil
}

// probe makes one connect to l, and closes it.
func (a *Attributor) probe(ctx context.Context, l *net.TCPListener) error {
	defer l.Close()
	if d, ok := ctx.Deadline(); ok {
		if err := l.SetDeadline(d); err != nil {
			return fmt.Errorf("self-probe: %w", err)
		}
	}
	addr := l.Addr().(*net.TCPAddr)
	restore, err := a.addOwnPort(uint16(addr.Port))
	if err != nil {
		return fmt.Errorf("self-probe: %w", err)
	}
	defer restore()

	var d net.Dialer
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return fmt.Errorf("self-probe: %w", err)
	}
	defer c.Close()
	for {
		s, err := l.AcceptTCP()
		if err != nil {
			return fmt.Errorf("self-probe: %w", err)
		}
		stranger := s.RemoteAddr().String() != c.LocalAddr().String()
		var got Process
		if !stranger {
			got = a.probed(s)
		}
		s.Close()
		switch {
		case stranger: // somebody scans ports; ours is still in the queue
		case !got.Known:
			return fmt.Errorf("%w: %s", ErrNotAttributed, got.Reason)
		case got.PID != os.Getpid():
			return fmt.Errorf("%w: it was taken for pid %d", ErrNotAttributed, got.PID)
		default:
			return nil
		}
	}
}

// probed is Process without counting it: a probe is no connection of anybody's.
func (a *Attributor) probed(c *net.TCPConn) Process {
	p := a.peer(SocketOf(c))
	defer p.Close()
	return p.Process()
}

// addOwnPort lets the hooks see one more port until the returned function runs.
func (a *Attributor) addOwnPort(port uint16) (func(), error) {
	if a.hooks == nil {
		return func() {}, nil
	}
	a.portsMu.Lock()
	defer a.portsMu.Unlock()
	if err := a.hooks.ports.Put(port, uint8(RoleOwn)); err != nil {
		return nil, err
	}
	return func() {
		a.portsMu.Lock()
		defer a.portsMu.Unlock()
		for role, ports := range a.ports {
			if slices.Contains(ports, port) {
				_ = a.hooks.ports.Put(port, uint8(role)) // it is there already
				return
			}
		}
		_ = a.hooks.ports.Delete(port) // at worst one port too many is looked at
	}, nil
}
