package scopewatch

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"
)

// RunParams are what [Run] is made of. Path, Hello and Watcher are required.
type RunParams struct {
	Path    string // of the connection file
	Hello   any    // body of the Hello, rendered as JSON; its launch nonce is a secret
	Watcher *Watcher
	// Serve takes every frame that is not the watcher's, binds among them, on the
	// goroutine that reads. nil: Requests are refused, all else is ignored.
	Serve func(Conn, wire.Frame)
	// Retry is how long to wait before connecting again; 0 is 500 ms.
	Retry time.Duration
}

const (
	codeDuplicate = "duplicate_module_id"

	defaultRetry = 500 * time.Millisecond
	helloTimeout = 5 * time.Second
)

// Run connects and registers a provider, follows scopes for its watcher, and
// connects again when the connection ends, until ctx does. It returns ctx's
// error, or a [RefusedError] when a Hello was refused: the router does not want
// this provider, and will not tomorrow. While an older connection of the same id
// is on its way out, it tries again.
func Run(ctx context.Context, p RunParams) error {
	if p.Retry <= 0 {
		p.Retry = defaultRetry
	}
	for {
		err := p.once(ctx)
		p.Watcher.Lost()
		if refused := new(RefusedError); errors.As(err, &refused) && refused.Code != codeDuplicate {
			return err
		}
		select {
		case <-time.After(p.Retry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once is one connection, from its dial to its end.
func (p *RunParams) once(ctx context.Context) error {
	file, err := connfile.Read(p.Path)
	if err != nil {
		return err
	}
	nc, err := connfile.Dial(ctx, file, handshake.RoleClient)
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	l := newLink()
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(nc)
	}()
	defer func() {
		l.close()
		nc.Close()
		<-written
	}()
	in := bufio.NewReaderSize(nc, 64<<10)
	ops, err := p.register(l, nc, in)
	if err != nil {
		return err
	}
	p.Watcher.Follow(l, ops)
	for {
		f, err := wire.ReadFrame(in)
		if err != nil {
			return err
		}
		switch {
		case f.Type == wire.Ping:
			f.Type = wire.Pong
			l.Send(f.Header, nil)
		case p.Watcher.Take(f):
		case p.Serve != nil:
			p.Serve(l, f)
		case f.Type == wire.Request:
			l.refuse(f.Header)
		}
	}
}

// register says Hello and returns the ops of the ack.
func (p *RunParams) register(l *link, nc net.Conn, in *bufio.Reader) ([]string, error) {
	_ = nc.SetReadDeadline(time.Now().Add(helloTimeout))
	corr := l.NewCorr()
	l.Send(wire.Header{Type: wire.Hello, Corr: corr}, wire.MustMarshal(p.Hello))
	for {
		f, err := wire.ReadFrame(in)
		if err != nil {
			return nil, err
		}
		if f.Channel != wire.ControlChannel || f.Corr != corr {
			continue // nothing of ours is under way yet
		}
		switch f.Type {
		case wire.HelloAck:
			var ack struct {
				Ops []string `json:"subc_ops"`
			}
			if err := decode(f.Body, &ack); err != nil {
				return nil, err
			}
			return ack.Ops, nc.SetReadDeadline(time.Time{})
		case wire.Error:
			var b wire.ErrorBody
			_ = decode(f.Body, &b)
			return nil, &RefusedError{b.Code, b.Message}
		}
	}
}
