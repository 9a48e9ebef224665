package launch

import (
	"context"
	"time"
)

// A wrong nonce costs the router a line in its log, so probes are counted: a
// burst, and then one in each interval.
const (
	probeBurst = 64
	probeEvery = 20 * time.Millisecond
)

// limiter lets a burst through and then one caller in each interval.
type limiter struct {
	every time.Duration
	burst int
	full  chan time.Time // one value: when the bucket is full again
}

func newLimiter(burst int, every time.Duration) limiter {
	l := limiter{every: every, burst: burst, full: make(chan time.Time, 1)}
	l.full <- time.Time{}
	return l
}

// take waits for a turn. It returns false when ctx ends first.
func (l limiter) take(ctx context.Context) bool {
	now := time.Now()
	full := <-l.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(l.every)
	l.full <- full
	wait := full.Sub(now) - time.Duration(l.burst)*l.every
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
