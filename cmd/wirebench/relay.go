package main

import (
	"fmt"
	"time"

	"scopeward/proxy/wire"
)

const (
	crowdSize = 32
	smallBody = 64
	midBody   = 64 << 10
	largeBody = 4<<20 - wire.HeaderLen // the router queues 4 MiB for a connection, headers included
	mega      = 1e6
)

// measureCrowd has 32 clients call at once, and reads what that costs the proxy.
func measureCrowd(w *world, e effort) (values, error) {
	callers := make([]*caller, 0, crowdSize)
	defer func() {
		for _, c := range callers {
			c.Close()
		}
	}()
	for range crowdSize {
		c, err := newCaller(w, smallBody)
		if err != nil {
			return nil, err
		}
		callers = append(callers, c)
	}
	if _, err := crowd(callers, e.Warm); err != nil {
		return nil, err
	}
	cost := meter{proxy: w.proxy}
	if err := cost.start(); err != nil {
		return nil, err
	}
	n, err := crowd(callers, e.Span)
	if err != nil {
		return nil, err
	}
	elapsed, used, err := cost.stop()
	if err != nil {
		return nil, err
	}
	v := values{echo32Rate: float64(n) / elapsed.Seconds()}
	if w.proxy != nil {
		v[echo32CPU] = used.Seconds() * mega / float64(n)
	}
	return v, nil
}

// meter takes the time, and the proxy's CPU time where there is a proxy.
type meter struct {
	proxy *process
	from  time.Time
	used  time.Duration
}

func (m *meter) start() (err error) {
	m.used, err = m.cpu()
	m.from = time.Now()
	return err
}

func (m *meter) stop() (elapsed, used time.Duration, err error) {
	elapsed = time.Since(m.from)
	now, err := m.cpu()
	return elapsed, now - m.used, err
}

func (m *meter) cpu() (time.Duration, error) {
	if m.proxy == nil {
		return 0, nil
	}
	return m.proxy.cpu()
}

// measureWindow measures one client with depth calls of size bytes in flight.
// scale turns calls a second into the metric's unit.
func measureWindow(metric string, size, depth int, scale float64) measure {
	return func(w *world, e effort) (values, error) {
		c, err := newCaller(w, size)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if _, err := c.window(depth, e.Warm); err != nil {
			return nil, err
		}
		from := time.Now()
		n, err := c.window(depth, e.Span)
		if err != nil {
			return nil, err
		}
		return values{metric: float64(n) / time.Since(from).Seconds() * scale}, nil
	}
}

// measureSequence measures one client that waits for each answer.
func measureSequence(w *world, e effort) (values, error) {
	c, err := newCaller(w, smallBody)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.sequence(e.Warm); err != nil {
		return nil, err
	}
	samples, err := c.sequence(e.Span)
	if err != nil {
		return nil, err
	}
	return values{echoSeq: percentile(samples, 50) * mega}, nil
}

// measureConnect measures a whole new connection up to its first answer.
func measureConnect(w *world, e effort) (values, error) {
	samples := make([]float64, e.Connects)
	body := describeServerBody()
	for i := range samples {
		from := time.Now()
		p, err := dial(w.front)
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		_, err = p.ask(body)
		samples[i] = time.Since(from).Seconds()
		p.Close()
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return values{connectP50: percentile(samples, 50) * mega}, nil
}
