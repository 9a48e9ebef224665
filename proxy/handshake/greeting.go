package handshake

import (
	"crypto/rand"
	"encoding/binary"
)

// Greeting is the server's side of one handshake as a pure state machine: bytes
// in, bytes out. It holds at most one message. Whoever feeds it owns the socket
// and the clock.
type Greeting struct {
	p     Params
	n     nonces
	hello ClientHello
	stage Stage
	in    []byte // the message that has not come whole
	done  bool
}

// NewGreeting begins a handshake.
func NewGreeting(p Params) *Greeting { return &Greeting{p: p, stage: StageClientHello} }

// Done reports whether the client has proved that it holds the key.
func (g *Greeting) Done() bool { return g.done }

// Hello is what the client claimed.
func (g *Greeting) Hello() ClientHello { return g.hello }

// Feed takes what the client sent next. It returns what the client is to be
// sent, and once the handshake is done the bytes behind it, which are the first
// of a frame and alias b. Every error is a [StageError] or [ErrKey], and the
// caller closes the connection without a word.
func (g *Greeting) Feed(b []byte) (reply, rest []byte, err error) {
	if len(g.p.Key) < MinKey {
		return nil, nil, ErrKey
	}
	for len(b) > 0 && !g.done {
		n := min(g.want(), len(b))
		g.in = append(g.in, b[:n]...)
		b = b[n:]
		if len(g.in) >= prefixLen && binary.LittleEndian.Uint32(g.in) > MaxMessage {
			return nil, nil, &StageError{g.stage, ErrSize}
		}
		if g.want() > 0 {
			continue
		}
		body := g.in[prefixLen:]
		g.in = nil
		more, err := g.message(body)
		if err != nil {
			return nil, nil, err
		}
		reply = append(reply, more...)
	}
	return reply, b, nil
}

// want is how many bytes are missing, of the length first and then of the
// message.
func (g *Greeting) want() int {
	if len(g.in) < prefixLen {
		return prefixLen - len(g.in)
	}
	return prefixLen + int(binary.LittleEndian.Uint32(g.in)) - len(g.in)
}

// message takes one whole message.
func (g *Greeting) message(body []byte) (reply []byte, err error) {
	if g.stage == StageClientAuth {
		if err := judgeClientAuth(body, &g.n, g.p.Key); err != nil {
			return nil, &StageError{StageClientAuth, err}
		}
		g.done = true
		return nil, nil
	}
	if g.hello, err = readClientHello(body, &g.n); err != nil {
		return nil, &StageError{StageClientHello, err}
	}
	rand.Read(g.n.server[:])
	copy(g.n.daemonID[:], g.p.DaemonID)
	if reply, err = serverProof(&g.n, g.p); err != nil {
		return nil, &StageError{StageServerProof, err}
	}
	g.stage = StageClientAuth
	return reply, nil
}
