package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
)

// AnswerTimeout is how long the router has to answer a question, unless the
// asker's context says otherwise.
const AnswerTimeout = 2 * time.Second

// Link is one client connection to the router. Its methods are safe for
// concurrent use.
//
// The router answers the requests of one connection in order, so a question that
// takes it long would hold up every other. Those go by a second connection,
// which is opened when it is needed and closed with the link.
type Link struct {
	File connfile.File // what it was dialled by

	slow     *Link      // nil until it is needed
	slowTurn sync.Mutex // held while slow is opened or replaced

	conn   net.Conn
	write  sync.Mutex // held for one whole frame
	done   chan struct{}
	reader sync.WaitGroup

	mu      sync.Mutex
	err     error // why done is closed
	corr    uint64
	waiting map[uint64]chan wire.Frame // one frame each
	streams map[uint64]*Stream
}

// Dial opens a link to the daemon that file names. It returns after the
// handshake.
func Dial(ctx context.Context, file connfile.File) (*Link, error) {
	conn, err := connfile.Dial(ctx, file, handshake.RoleClient)
	if err != nil {
		return nil, err
	}
	return newLink(conn, file), nil
}

func newLink(conn net.Conn, file connfile.File) *Link {
	l := &Link{
		File:    file,
		conn:    conn,
		done:    make(chan struct{}),
		waiting: map[uint64]chan wire.Frame{},
		streams: map[uint64]*Stream{},
	}
	l.reader.Go(l.read)
	return l
}

// Addr is the address of the router that answered, host:port.
func (l *Link) Addr() string { return l.conn.RemoteAddr().String() }

// Done is closed when the link is gone.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err says why the link is gone, nil while it is there.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close ends the link and waits for its reader.
func (l *Link) Close() error {
	l.fail(ErrClosed)
	l.reader.Wait()
	l.slowTurn.Lock()
	defer l.slowTurn.Unlock()
	if l.slow != nil {
		l.slow.Close()
	}
	return nil
}

// aside returns the connection for questions that take the router long.
func (l *Link) aside(ctx context.Context) (*Link, error) {
	l.slowTurn.Lock()
	defer l.slowTurn.Unlock()
	if err := l.Err(); err != nil {
		return nil, err
	}
	if l.slow != nil && l.slow.Err() == nil {
		return l.slow, nil
	}
	slow, err := Dial(ctx, l.File)
	if err != nil {
		return nil, err
	}
	if l.slow != nil {
		l.slow.Close()
	}
	l.slow = slow
	return slow, nil
}

// Do asks one question and decodes its answer into out, unknown members ignored.
// body is the request's whole body, op its op. A refusal is a [RefusedError].
func (l *Link) Do(ctx context.Context, op string, body, out any) error {
	f, err := l.ask(ctx, wire.Request, body)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return decode(op, f, wire.Response, out)
}

func decode(op string, f wire.Frame, want wire.Type, out any) error {
	switch {
	case f.Type == wire.Error:
		var e wire.ErrorBody
		if err := json.Unmarshal(f.Body, &e); err != nil || e.Code == "" {
			return fmt.Errorf("%s: %w", op, ErrReply)
		}
		return &RefusedError{Op: op, Code: e.Code}
	case f.Type != want:
		return fmt.Errorf("%s: %w", op, ErrReply)
	}
	if err := json.Unmarshal(f.Body, out); err != nil {
		return fmt.Errorf("%s: %w", op, ErrReply)
	}
	return nil
}

// ask sends one frame under a corr of its own and waits for the frame that
// answers it.
func (l *Link) ask(ctx context.Context, t wire.Type, body any) (wire.Frame, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, AnswerTimeout, ErrNoAnswer)
		defer cancel()
	}
	answer := make(chan wire.Frame, 1)
	corr, err := l.register(func(corr uint64) { l.waiting[corr] = answer })
	if err != nil {
		return wire.Frame{}, err
	}
	defer l.forget(corr)
	if err := l.send(wire.Header{Type: t, Corr: corr}, wire.MustMarshal(body)); err != nil {
		return wire.Frame{}, err
	}
	select {
	case f := <-answer:
		return f, nil
	case <-l.done:
		return wire.Frame{}, l.Err()
	case <-ctx.Done():
		return wire.Frame{}, context.Cause(ctx)
	}
}

func (l *Link) register(add func(corr uint64)) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	l.corr++
	add(l.corr)
	return l.corr, nil
}

func (l *Link) forget(corr uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, corr)
	delete(l.streams, corr)
}

// send writes one frame. A router that does not read it in time has lost us: the
// frame may be cut in the middle.
func (l *Link) send(h wire.Header, body []byte) error {
	l.write.Lock()
	defer l.write.Unlock()
	l.conn.SetWriteDeadline(time.Now().Add(AnswerTimeout))
	if _, err := l.conn.Write(wire.AppendFrame(nil, h, body)); err != nil {
		l.fail(fmt.Errorf("%w: %w", ErrClosed, err))
		return l.Err()
	}
	return nil
}

func (l *Link) read() {
	for {
		f, err := wire.ReadFrame(l.conn)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the router closed it")
			}
			l.fail(fmt.Errorf("%w: %w", ErrClosed, err))
			return
		}
		l.deliver(f)
	}
}

func (l *Link) deliver(f wire.Frame) {
	if f.Channel != wire.ControlChannel {
		return
	}
	switch f.Type {
	case wire.Ping:
		// The reader must not wait for a writer that waits for the router.
		go l.send(wire.Header{Type: wire.Pong, Corr: f.Corr}, nil)
		return
	case wire.Response, wire.Error, wire.HelloAck, wire.StreamData, wire.StreamEnd:
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer, ok := l.waiting[f.Corr]; ok {
		delete(l.waiting, f.Corr)
		answer <- f
		return
	}
	if s, ok := l.streams[f.Corr]; ok && !s.put(f) {
		delete(l.streams, f.Corr)
	}
}

// fail ends the link once; the first reason stays.
func (l *Link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	for corr, s := range l.streams {
		s.end(err)
		delete(l.streams, corr)
	}
	close(l.done)
	l.conn.Close()
}
