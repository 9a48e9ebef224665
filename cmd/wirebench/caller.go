package main

import (
	"errors"
	"fmt"
	"time"

	"scopeward/proxy/wire"
)

// batched is the largest frame, in bytes, of which several go out in one write.
const batched = 4 << 10

// caller calls over one route of one connection.
type caller struct {
	*peer
	route route
	frame []byte // one request; its header is written anew for each call
}

// newCaller dials and opens a route to the echo module for bodies of size
// bytes.
func newCaller(w *world, size int) (*caller, error) {
	p, err := dial(w.front)
	if err != nil {
		return nil, err
	}
	r, err := p.open(openBody(moduleEcho, launch{}, nil))
	if err != nil {
		p.Close()
		return nil, err
	}
	if size > batched {
		p.in.widen(wideBuffer)
	}
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i)
	}
	return &caller{peer: p, route: r, frame: wire.AppendFrame(nil, wire.Header{}, body)}, nil
}

// call sends n calls without waiting for answers.
func (c *caller) call(n int) error {
	h := wire.Header{
		Len: uint32(len(c.frame) - wire.HeaderLen), Type: wire.Request, Flags: wire.FlagInteractive,
		Channel: c.route.Channel, Epoch: c.route.Epoch,
	}
	c.out = c.out[:0]
	for range n {
		c.corr++
		h.Corr = c.corr
		h.Append(c.frame[:0])
		if len(c.frame) > batched {
			if _, err := c.Write(c.frame); err != nil {
				return err
			}
			continue
		}
		c.out = append(c.out, c.frame...)
	}
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.Write(c.out)
	return err
}

// answers counts the answers that a read brought.
func (c *caller) answers() (int, error) {
	if err := c.fill(); err != nil {
		return 0, err
	}
	n := 0
	for {
		h, raw, ok, err := c.in.next()
		if err != nil || !ok {
			return n, err
		}
		switch {
		case h.Type == wire.Error:
			return n, refusal(raw[wire.HeaderLen:])
		case h.Channel == wire.ControlChannel:
		case h.Type != wire.Response || h.Channel != c.route.Channel || len(raw) != len(c.frame):
			return n, fmt.Errorf("%v of %d bytes in place of an answer", h.Type, len(raw))
		default:
			n++
		}
	}
}

// window keeps depth calls in flight for span, waits for the last and returns
// how many were answered.
func (c *caller) window(depth int, span time.Duration) (int, error) {
	end := time.Now().Add(span)
	total, pending := 0, depth
	err := c.call(depth)
	for err == nil && pending > 0 {
		var n int
		n, err = c.answers()
		total, pending = total+n, pending-n
		if err == nil && n > 0 && time.Now().Before(end) {
			pending += n
			err = c.call(n)
		}
	}
	return total, err
}

// sequence makes one call after another for span and returns how long each
// took, in seconds.
func (c *caller) sequence(span time.Duration) ([]float64, error) {
	samples := make([]float64, 0, 1<<16)
	from := time.Now()
	for end := from.Add(span); from.Before(end); {
		if err := c.call(1); err != nil {
			return nil, err
		}
		for n := 0; n == 0; {
			var err error
			if n, err = c.answers(); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		samples = append(samples, now.Sub(from).Seconds())
		from = now
	}
	return samples, nil
}

// crowd lets each caller make one call after another for span, all from this
// thread, and returns how many were answered.
func crowd(callers []*caller, span time.Duration) (int, error) {
	var p poller
	defer p.close()
	for i, c := range callers {
		if err := errors.Join(p.add(c.fd, i), c.call(1)); err != nil {
			return 0, err
		}
	}
	end := time.Now().Add(span)
	total := 0
	for pending := len(callers); pending > 0; {
		ready, err := p.wait()
		if err != nil {
			return total, err
		}
		again := time.Now().Before(end)
		for _, i := range ready {
			n, err := callers[i].answers()
			total, pending = total+n, pending-n
			if err == nil && again && n > 0 {
				pending += n
				err = callers[i].call(n)
			}
			if err != nil {
				return total, err
			}
		}
	}
	return total, nil
}
