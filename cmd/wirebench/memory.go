package main

import (
	"math"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// measurePeak reads the most memory the proxy ever had.
func measurePeak(metric string) measure {
	return func(w *world, _ effort) (values, error) {
		p, err := w.guard()
		if err != nil {
			return nil, err
		}
		peak, err := p.memory("VmHWM")
		return values{metric: peak / mib}, err
	}
}

// measureIdle opens connections that say nothing after their first answer and
// reads what each costs the proxy.
func measureIdle(w *world, e effort) (values, error) {
	p, err := w.guard()
	if err != nil {
		return nil, err
	}
	before, err := settled(p)
	if err != nil {
		return nil, err
	}
	body := describeServerBody()
	for range e.Idle {
		c, err := dial(w.front)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if _, err := c.ask(body); err != nil {
			return nil, err
		}
	}
	after, err := settled(p)
	return values{rssIdle: (after - before) / kib / float64(e.Idle)}, err
}

// settled waits until a process's memory has stopped moving, two seconds at
// most, and returns it in bytes.
func settled(p *process) (float64, error) {
	last, still := math.Inf(1), 0
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 40 {
		now, err := p.memory("VmRSS")
		if err != nil {
			return 0, err
		}
		if math.Abs(now-last) < 64*kib {
			still++
		} else {
			still = 0
		}
		if last = now; still == 4 {
			break
		}
		<-tick.C
	}
	return last, nil
}
