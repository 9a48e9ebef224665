package proxy

import (
	"sync/atomic"
	"time"
)

// measureEvery is how many reads of a loop one measurement stands for. A clock is
// read at a measured one only.
const measureEvery = 64

// RelayBuckets is how many bounds the histogram of [RelayTimes] has.
const RelayBuckets = 12

// RelayTimes is a sample of how long bytes stay with us: from the read of one
// socket until all that it gave for the other one has been written there. A peer
// that does not take its bytes is in it. What a read gave that waits for an
// answer first, an open for instance, is not. One read in 64 of each loop counts.
type RelayTimes struct {
	Within [RelayBuckets]uint64 // how many took as long as [RelayBound] or less, and longer than the bound before
	Over   uint64               // how many took longer than the last bound
	Sum    time.Duration
}

// RelayBound is the upper bound of bucket i: 1 µs, four times as much each, to 4 s.
func RelayBound(i int) time.Duration { return time.Microsecond << (2 * i) }

// RelayTimes sums up what the loops have measured since the start.
func (s *Server) RelayTimes() RelayTimes {
	var t RelayTimes
	for _, l := range s.loops {
		for i := range t.Within {
			t.Within[i] += l.times.within[i].Load()
		}
		t.Over += l.times.over.Load()
		t.Sum += time.Duration(l.times.sum.Load())
	}
	return t
}

// times are one loop's. Its thread alone writes them.
type times struct {
	reads  uint
	within [RelayBuckets]atomic.Uint64
	over   atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// due reports whether the next read is measured.
func (t *times) due() bool {
	t.reads++
	return t.reads%measureEvery == 0
}

// taken ends a side's measurement, if it has one: its socket has taken everything.
func (t *times) taken(sd *side) {
	if sd.since.IsZero() {
		return
	}
	took := time.Since(sd.since)
	sd.since = time.Time{}
	t.sum.Add(int64(took))
	for i := range t.within {
		if took <= RelayBound(i) {
			t.within[i].Add(1)
			return
		}
	}
	t.over.Add(1)
}
