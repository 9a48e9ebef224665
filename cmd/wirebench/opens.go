package main

import (
	"errors"
	"fmt"
	"time"

	"scopeward/proxy/wire"
)

const (
	churnClients = 4
	churnEach    = 8 // the router's limit for one connection
)

// measureOpen opens and leaves one route after another and takes the opens'
// time.
func measureOpen(w *world, e effort) (values, error) {
	v, err := timeOpens(w, openBody(moduleEcho, launch{}, nil), e.Opens)
	return values{openP50: v}, err
}

// timeOpens returns the median of n opens in microseconds, once half as many have
// been made: what came before, such as an owner's first set, leaves every world
// with some work of its own.
func timeOpens(w *world, body []byte, n int) (float64, error) {
	p, err := dial(w.front)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	warm := n / 2
	samples := make([]float64, n)
	for i := -warm; i < n; i++ {
		from := time.Now()
		answer, err := p.ask(body)
		took := time.Since(from).Seconds()
		if err != nil {
			return 0, fmt.Errorf("open %d: %w", warm+i, err)
		}
		if i >= 0 {
			samples[i] = took
		}
		r, err := parseRoute(answer)
		if err != nil {
			return 0, err
		}
		if err := p.leave(r); err != nil {
			return 0, err
		}
	}
	return percentile(samples, 50) * mega, nil
}

// churner keeps opens pending on one connection and leaves each route as soon
// as it is there.
type churner struct {
	*peer
	body []byte
}

// open asks for n more routes, behind the Goodbyes that out already holds.
func (c *churner) open(n int) error {
	for range n {
		c.corr++
		h := wire.Header{Type: wire.Request, Flags: wire.FlagInteractive, Corr: c.corr}
		c.out = wire.AppendFrame(c.out, h, c.body)
	}
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// collect reads once, puts a Goodbye into out for each route that came, and
// counts the routes and the opens that the router's limits refused.
func (c *churner) collect() (opened, full int, err error) {
	if err := c.fill(); err != nil {
		return 0, 0, err
	}
	for {
		h, raw, ok, err := c.in.next()
		if err != nil || !ok {
			return opened, full, err
		}
		body := raw[wire.HeaderLen:]
		switch {
		case h.Channel == wire.ControlChannel && h.Type == wire.Response:
			r, err := parseRoute(body)
			if err != nil {
				return opened, full, err
			}
			c.out = wire.AppendGoodbye(c.out, r.Channel, r.Epoch)
			opened++
		case h.Type == wire.Error:
			var e *refused
			if err := refusal(body); !errors.As(err, &e) || e.code != wire.CodeTargetUnavailable {
				return opened, full, err
			}
			full++
		}
	}
}

// measureChurn opens and closes routes with 32 opens pending over four
// connections and two modules.
func measureChurn(w *world, e effort) (values, error) {
	var p poller
	defer p.close()
	left := e.Churn
	var clients []*churner
	for i := range churnClients {
		conn, err := dial(w.front)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		target := []string{moduleEcho, moduleEcho2}[i%2]
		clients = append(clients, &churner{peer: conn, body: openBody(target, launch{}, nil)})
		if err := p.add(conn.fd, i); err != nil {
			return nil, err
		}
	}
	from := time.Now()
	for _, c := range clients {
		if err := c.open(churnEach); err != nil {
			return nil, err
		}
		left -= churnEach
	}
	opened, refusals := 0, 0
	for opened < e.Churn {
		ready, err := p.wait()
		if err != nil {
			return nil, err
		}
		for _, i := range ready {
			n, full, err := clients[i].collect()
			if err != nil {
				return nil, err
			}
			opened, refusals = opened+n, refusals+full
			more := min(n, left)
			left -= more
			if err := clients[i].open(more + full); err != nil {
				return nil, err
			}
		}
		if refusals > e.Churn/10 {
			return nil, fmt.Errorf("%d of %d opens met the router's limits", refusals, opened+refusals)
		}
	}
	return values{openCloseRate: float64(opened) / time.Since(from).Seconds()}, nil
}
