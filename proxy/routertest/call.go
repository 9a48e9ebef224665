package routertest

import (
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// Call is a request under way.
type Call struct {
	p     *Peer
	Corr  uint64
	what  string
	reply *wire.Frame // under the peer's lock
}

// NewCorr takes the connection's next corr.
func (p *Peer) NewCorr() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.corr++
	return p.corr
}

// Start sends a frame of type t and waits for nothing yet. body is rendered as
// JSON unless it is a []byte or a jsontext.Value.
func (p *Peer) Start(t wire.Type, channel uint16, epoch uint32, body any) *Call {
	c := &Call{p: p, Corr: p.NewCorr(), what: t.String()}
	b := render(body)
	if channel == wire.ControlChannel {
		c.what += " " + clip(b)
	}
	p.mu.Lock()
	p.waiting[replyKey{channel, c.Corr}] = c
	p.mu.Unlock()
	p.Send(wire.Header{Type: t, Channel: channel, Epoch: epoch, Corr: c.Corr}, b)
	return c
}

func render(body any) []byte {
	switch b := body.(type) {
	case nil:
		return nil
	case []byte:
		return b
	case jsontext.Value:
		return b
	}
	return wire.MustMarshal(body)
}

// Wait waits for the reply and fails the test when none comes.
func (c *Call) Wait() Reply {
	c.p.tb.Helper()
	if !c.p.await(func() bool { return c.reply != nil }) {
		c.p.tb.Fatalf("%s: no reply to %s: %s", c.p.name, c.what, c.p.why())
	}
	return Reply{c.p, *c.reply}
}

// Answered reports whether the reply is there.
func (c *Call) Answered() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.reply != nil
}

// Ask sends a Request on channel 0 and waits for its reply.
func (p *Peer) Ask(body any) Reply {
	p.tb.Helper()
	return p.Start(wire.Request, wire.ControlChannel, 0, body).Wait()
}

// Settle exchanges a Ping and its Pong: what the other side had for us before is
// here when it returns.
func (p *Peer) Settle() {
	p.tb.Helper()
	p.Start(wire.Ping, wire.ControlChannel, 0, nil).Wait()
}
