package operator

import (
	"cmp"
	"slices"
	"sync"

	"scopeward/proxy"
)

// One opener's decisions may fill so many lines of the log at once, and then so
// many in a second.
const (
	lineBurst     = 100
	linesPerSec   = 20
	msPerLine     = 1000 / linesPerSec
	openersCapped = 8192 // openers that are counted apart
)

// limiter gives each opener its share of the log, and counts what it leaves out.
// Its clock is the decisions' own.
type limiter struct {
	mu      sync.Mutex
	openers map[proxy.ConnID]*bucket
	pruned  int64  // when, Unix milliseconds
	others  uint64 // left out of openers that are not counted apart
}

// bucket is one opener's share: it is full at fullAt.
type bucket struct {
	fullAt  int64 // Unix milliseconds
	dropped uint64
}

func newLimiter() *limiter { return &limiter{openers: map[proxy.ConnID]*bucket{}} }

// allow takes one line from the share of an opener.
func (l *limiter) allow(opener proxy.ConnID, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.openers[opener]
	if b == nil {
		if len(l.openers) >= openersCapped && !l.pruneLocked(now) {
			l.others++
			return false
		}
		b = &bucket{}
		l.openers[opener] = b
	}
	full := max(b.fullAt, now)
	if full-now > (lineBurst-1)*msPerLine {
		if full-now > 2*lineBurst*msPerLine {
			b.fullAt = now // the clock was set back
		}
		b.dropped++
		return false
	}
	b.fullAt = full + msPerLine
	return true
}

// pruneLocked forgets openers whose share is whole again, at most once a second.
func (l *limiter) pruneLocked(now int64) bool {
	if now >= l.pruned && now-l.pruned < 1000 {
		return false
	}
	l.pruned = now
	for id, b := range l.openers {
		if b.fullAt <= now && b.dropped == 0 {
			delete(l.openers, id)
		}
	}
	return len(l.openers) < openersCapped
}

// omission is how many lines of one opener were left out; opener 0 stands for
// all the others.
type omission struct {
	opener  proxy.ConnID
	dropped uint64
}

// told is how many openers are named when omissions are told.
const told = 16

// omissions takes what was left out since it was last called, the most first.
func (l *limiter) omissions() []omission {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := omission{dropped: l.others}
	l.others = 0
	var list []omission
	for id, b := range l.openers {
		if b.dropped > 0 {
			list = append(list, omission{id, b.dropped})
			b.dropped = 0
		}
	}
	slices.SortFunc(list, func(a, b omission) int {
		return cmp.Or(cmp.Compare(b.dropped, a.dropped), cmp.Compare(a.opener, b.opener))
	})
	for ; len(list) > told; list = list[:len(list)-1] {
		rest.dropped += list[len(list)-1].dropped
	}
	if rest.dropped > 0 {
		list = append(list, rest)
	}
	return list
}
