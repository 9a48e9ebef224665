package router

import (
	"context"

	"scopeward/proxy/wire"
)

// backlog is how many frames of one stream wait for its reader. The router
// itself retains as many events.
const backlog = 4096

// Stream is the held answer to one request: frames until it ends.
type Stream struct {
	op     string
	corr   uint64
	link   *Link
	frames chan wire.Frame
	err    error // written before frames is closed
}

// stream sends a request whose answer is held open.
func (l *Link) stream(op string, body any) (*Stream, error) {
	s := &Stream{op: op, link: l, frames: make(chan wire.Frame, backlog)}
	corr, err := l.register(func(corr uint64) {
		s.corr = corr
		l.streams[corr] = s
	})
	if err != nil {
		return nil, err
	}
	if err := l.send(wire.Header{Type: wire.Request, Corr: corr}, wire.MustMarshal(body)); err != nil {
		return nil, err
	}
	return s, nil
}

// put takes a frame from the link's reader, under the link's lock, and says
// whether the stream goes on.
func (s *Stream) put(f wire.Frame) bool {
	select {
	case s.frames <- f:
	default:
		s.end(ErrLagged)
		return false
	}
	if f.Type == wire.StreamData {
		return true
	}
	close(s.frames)
	return false
}

func (s *Stream) end(err error) {
	s.err = err
	close(s.frames)
}

// next returns the next frame's body, decoded into out. The stream's end is
// [ErrEnded], a refusal a [RefusedError], the link's end [ErrClosed].
func (s *Stream) next(ctx context.Context, out any) error {
	select {
	case f, ok := <-s.frames:
		switch {
		case !ok && s.err != nil:
			return s.err
		case !ok || f.Type == wire.StreamEnd:
			return ErrEnded
		}
		return decode(s.op, f, wire.StreamData, out)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close cancels the stream at the router. It may be called after its end.
func (s *Stream) Close() {
	s.link.mu.Lock()
	_, open := s.link.streams[s.corr]
	delete(s.link.streams, s.corr)
	s.link.mu.Unlock()
	if open {
		s.link.send(wire.Header{Type: wire.Cancel, Corr: s.corr}, nil)
	}
}
