package operator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
)

const someMS = 1_700_000_000_000

func (l *limiter) allowed(opener proxy.ConnID, now int64, tries int) (n int) {
	for range tries {
		if l.allow(opener, now) {
			n++
		}
	}
	return n
}

// An opener has a burst, and then so many lines in a second; another's share is
// its own.
func TestLimiterShares(t *testing.T) {
	l := newLimiter()
	require.Equal(t, lineBurst, l.allowed(1, someMS, 1000))
	require.Equal(t, lineBurst, l.allowed(2, someMS, 1000))
	require.Equal(t, linesPerSec, l.allowed(1, someMS+1000, 1000))
	require.Equal(t, lineBurst, l.allowed(1, someMS+3_600_000, 1000))
}

// What is left out is counted, and told once, the most first.
func TestLimiterCountsWhatItLeavesOut(t *testing.T) {
	l := newLimiter()
	l.allowed(1, someMS, lineBurst+5)
	l.allowed(2, someMS, lineBurst+7)
	l.allowed(3, someMS, lineBurst)
	require.Equal(t, []omission{{2, 7}, {1, 5}}, l.omissions())
	require.Empty(t, l.omissions())
}

func TestLimiterNamesOnlyTheWorst(t *testing.T) {
	l := newLimiter()
	for id := range proxy.ConnID(told + 10) {
		l.allowed(id+1, someMS, lineBurst+1+int(id))
	}
	list := l.omissions()
	require.Len(t, list, told+1)
	require.Equal(t, omission{told + 10, told + 10}, list[0])
	require.Equal(t, omission{0, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10}, list[told])
}

// Openers that come and go can't make it grow without end.
func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter()
	for id := range proxy.ConnID(openersCapped) {
		l.allow(id+1, someMS)
	}
	require.False(t, l.allow(openersCapped+1, someMS), "every share is in use")
	require.True(t, l.allow(openersCapped+1, someMS+2000), "shares that are whole again are forgotten")
	require.LessOrEqual(t, len(l.openers), openersCapped)
	require.Equal(t, []omission{{0, 1}}, l.omissions())
}

// A clock that is set back does not silence an opener.
func TestLimiterWithAClockSetBack(t *testing.T) {
	l := newLimiter()
	l.allowed(1, someMS, lineBurst)
	require.Positive(t, l.allowed(1, someMS-86_400_000, 3))
}
