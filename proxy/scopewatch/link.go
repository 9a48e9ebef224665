package scopewatch

import (
	"io"
	"sync"

	"scopeward/proxy/wire"
)

// link is the [Conn] of [Run]: what is sent waits for the writer.
type link struct {
	mu     sync.Mutex
	ready  *sync.Cond
	corr   uint64
	queue  []byte
	closed bool
}

func newLink() *link {
	l := &link{}
	l.ready = sync.NewCond(&l.mu)
	return l
}

// NewCorr implements [Conn].
func (l *link) NewCorr() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.corr++
	return l.corr
}

// Send implements [Conn].
func (l *link) Send(h wire.Header, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.queue = wire.AppendFrame(l.queue, h, body)
		l.ready.Signal()
	}
}

func (l *link) refuse(h wire.Header) {
	l.Send(wire.Header{Type: wire.Error, Channel: h.Channel, Epoch: h.Epoch, Corr: h.Corr},
		wire.MustMarshal(wire.ErrorBody{Code: wire.CodeUnsupportedControlFrame, Message: "this provider serves nothing"}))
}

// write writes what is sent, until the link is closed or a write fails.
func (l *link) write(to io.Writer) {
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.closed {
			l.ready.Wait()
		}
		b, closed := l.queue, l.closed
		l.queue = nil
		l.mu.Unlock()
		if closed {
			return
		}
		if _, err := to.Write(b); err != nil {
			l.close()
			return
		}
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.queue = true, nil
	l.ready.Signal()
}
