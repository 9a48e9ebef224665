package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// patience bounds every single wait of these tests.
const patience = 20 * time.Second

type object = map[string]any

// link is one authenticated connection. Answers go to whoever asked; all else
// is kept in order.
type link struct {
	t    *testing.T
	conn net.Conn

	mu      sync.Mutex
	corr    uint64
	waiting map[uint64]chan wire.Frame

	inbox  chan wire.Frame // what nobody asked for
	ended  chan struct{}   // closed when the connection is
	record bytes.Buffer    // every byte that came; read it after close
	why    error           // what ended it
}

// dialFile connects to the daemon that the connection file at path names.
func dialFile(path string) (net.Conn, error) {
	f, err := connfile.Read(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return connfile.Dial(ctx, f, handshake.RoleClient)
}

// newLink connects to the daemon of the file at path. answer, which may be nil,
// sees every frame first, on the reader's goroutine, and takes the ones it
// returns true for.
func newLink(t *testing.T, path string, answer func(*link, wire.Frame) bool) *link {
	t.Helper()
	conn, err := dialFile(path)
	require.NoError(t, err)
	return newLinkOn(t, conn, answer)
}

// newLinkOn is newLink on a connection that has authenticated.
func newLinkOn(t *testing.T, conn net.Conn, answer func(*link, wire.Frame) bool) *link {
	l := &link{
		t: t, conn: conn, waiting: map[uint64]chan wire.Frame{},
		inbox: make(chan wire.Frame, 1<<16), ended: make(chan struct{}),
	}
	go l.read(answer)
	t.Cleanup(l.close)
	return l
}

func (l *link) read(answer func(*link, wire.Frame) bool) {
	defer close(l.ended)
	r := bufio.NewReaderSize(io.TeeReader(l.conn, &l.record), 256<<10)
	for {
		f, err := wire.ReadFrame(r)
		if err != nil {
			l.why = err
			return
		}
		if answer != nil && answer(l, f) {
			continue
		}
		if w := l.take(f); w != nil {
			w <- f
			continue
		}
		l.inbox <- f
	}
}

func (l *link) take(f wire.Frame) chan wire.Frame {
	switch f.Type {
	case wire.Response, wire.Error, wire.HelloAck:
	default:
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waiting[f.Corr]
	delete(l.waiting, f.Corr)
	return w
}

// close ends the connection and waits for its reader.
func (l *link) close() {
	l.conn.Close()
	<-l.ended
}

// send writes one frame.
func (l *link) send(h wire.Header, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.SetWriteDeadline(time.Now().Add(patience))
	l.conn.Write(wire.AppendFrame(nil, h, body))
}

// ask sends one frame under a new corr and returns where its answer will come.
func (l *link) ask(h wire.Header, body []byte) <-chan wire.Frame {
	l.mu.Lock()
	l.corr++
	h.Corr = l.corr
	w := make(chan wire.Frame, 1)
	l.waiting[h.Corr] = w
	l.mu.Unlock()
	l.send(h, body)
	return w
}

// await returns the answer of an ask, and fails the test without one.
func (l *link) await(w <-chan wire.Frame) wire.Frame {
	l.t.Helper()
	f, ok := l.answer(w)
	require.True(l.t, ok, "no answer")
	return f
}

// answer returns the answer of an ask, or false when the connection ends first
// or none comes in time.
func (l *link) answer(w <-chan wire.Frame) (wire.Frame, bool) {
	select {
	case f := <-w:
		return f, true
	case <-l.ended:
	case <-time.After(patience):
	}
	select {
	case f := <-w:
		return f, true
	default:
		return wire.Frame{}, false
	}
}

// request asks on the control channel.
func (l *link) request(body any) wire.Frame {
	l.t.Helper()
	return l.await(l.ask(wire.Header{Flags: wire.FlagInteractive}, wire.MustMarshal(body)))
}

// next returns the next frame that nobody asked for.
func (l *link) next() wire.Frame {
	l.t.Helper()
	select {
	case f := <-l.inbox:
		return f
	default:
	}
	select {
	case f := <-l.inbox:
		return f
	case <-time.After(patience):
		require.Fail(l.t, "no frame came")
	case <-l.ended:
		select {
		case f := <-l.inbox:
			return f
		default:
			require.Failf(l.t, "the connection ended", "%v, after %d bytes", l.why, l.record.Len())
		}
	}
	return wire.Frame{}
}

// route is an open route at its opener.
type route struct {
	Channel uint16 `json:"route_channel"`
	Epoch   uint32 `json:"route_epoch"`
}

// refusal is what an Error frame says.
type refusal = wire.ErrorBody

// open opens a route; exactly one of the results is set.
func (l *link) open(body object) (*route, *refusal) {
	l.t.Helper()
	f := l.request(body)
	if f.Type == wire.Error {
		return nil, decode[refusal](l.t, f)
	}
	require.Equal(l.t, wire.Response, f.Type)
	return decode[route](l.t, f), nil
}

// mustOpen opens a route that must be admitted.
func (l *link) mustOpen(body object) *route {
	l.t.Helper()
	r, refused := l.open(body)
	if refused != nil {
		require.Failf(l.t, "open refused", "%s: %s", refused.Code, refused.Message)
	}
	return r
}

// call makes one call on r.
func (l *link) call(r *route, body any) wire.Frame {
	l.t.Helper()
	return l.await(l.ask(wire.Header{Flags: wire.FlagInteractive, Channel: r.Channel, Epoch: r.Epoch}, wire.MustMarshal(body)))
}

// decode reads the body of a control frame, whatever else it may hold.
func decode[T any](t *testing.T, f wire.Frame) *T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(f.Body, &v), "%s", f.Body)
	return &v
}
