package main

import (
	"errors"
	"fmt"
	"runtime"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"
)

// The modules of every world.
const (
	moduleEcho    = "echo"    // answers every call with its body
	moduleEcho2   = "echo2"   // another one, since a router keeps at most 16 binds of one module pending
	moduleOwner   = "owner"   // owns 10,000 scopes
	moduleSmall   = "small"   // owns 1,000 scopes
	moduleCarrier = "carrier" // opens routes under the owner's scopes
)

func moduleNames() []string {
	return []string{moduleEcho, moduleEcho2, moduleOwner, moduleSmall, moduleCarrier}
}

// register dials and says Hello as a launched module.
func register(front connfile.File, l launch) (*peer, error) {
	p, err := dial(front)
	if err != nil {
		return nil, err
	}
	err = p.send(wire.Header{Type: wire.Hello, Flags: wire.FlagInteractive}, helloBody(l))
	if err == nil {
		_, _, err = p.await()
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("register %s: %w", l.Module, err)
	}
	return p, nil
}

// echo serves a module's connection from a thread of its own until it ends: it
// accepts every bind and returns every call's body.
type echo struct {
	peer *peer
	done chan struct{}
}

func serveEcho(p *peer) *echo {
	p.in.widen(wideBuffer)
	e := &echo{peer: p, done: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(e.done)
		e.run()
	}()
	return e
}

// stop ends the connection and waits for the thread.
func (e *echo) stop() {
	e.peer.Hangup()
	<-e.done
	e.peer.Close()
}

func (e *echo) run() {
	for {
		if err := e.peer.fill(); err != nil {
			if errors.Is(err, errIdle) {
				continue
			}
			return
		}
		if err := e.answer(); err != nil {
			return
		}
	}
}

// answer answers all whole frames of the buffer with one write. A call becomes
// its answer in place: the header is written over and the body stays.
func (e *echo) answer() error {
	p := e.peer
	start := p.in.r
	p.out = p.out[:0]
	for {
		h, raw, ok, err := p.in.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if h.Channel != wire.ControlChannel && h.Type == wire.Request {
			h.Type = wire.Response
			h.Append(raw[:0])
			continue
		}
		if err := e.flush(start, p.in.r-len(raw)); err != nil {
			return err
		}
		start = p.in.r
		p.out = appendControlAnswer(p.out, h, raw[wire.HeaderLen:])
	}
	if err := e.flush(start, p.in.r); err != nil {
		return err
	}
	if len(p.out) == 0 {
		return nil
	}
	_, err := p.Write(p.out)
	return err
}

func (e *echo) flush(from, to int) error {
	if from == to {
		return nil
	}
	_, err := e.peer.Write(e.peer.in.b[from:to])
	return err
}

const (
	bindAck  = `{"op":"` + wire.OpRouteBind + `"}`
	healthOK = `{"op":"` + wire.OpHealthCheck + `","status":"ok"}`
)

// appendControlAnswer appends the answer to a frame that is no call. Pushes and
// Goodbyes have none.
func appendControlAnswer(b []byte, h wire.Header, body []byte) []byte {
	switch {
	case h.Type == wire.Ping:
		return wire.AppendFrame(b, wire.Header{Type: wire.Pong, Corr: h.Corr}, nil)
	case h.Type != wire.Request:
		return b
	}
	answer := wire.Header{Type: wire.Response, Corr: h.Corr}
	o, err := wire.ParseObject(body)
	if err != nil {
		return b
	}
	switch op, _ := o.Get("op"); string(op) {
	case `"` + wire.OpRouteBind + `"`:
		return wire.AppendFrame(b, answer, []byte(bindAck))
	case `"` + wire.OpHealthCheck + `"`:
		return wire.AppendFrame(b, answer, []byte(healthOK))
	}
	return b
}
