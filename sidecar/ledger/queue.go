package ledger

import (
	"sync"
	"time"

	"scopeward/table"
)

// MaxQueued is how many contents and ends wait for the disk at most: about 100
// bytes each, beside the records, which a table holds as well.
const MaxQueued = 100_000

// maxBatch is how many of them one transaction takes, unless a single change has
// more.
const maxBatch = 20_000

// Stats are a ledger's counters since it was opened.
type Stats struct {
	Head     uint64 // number of the last entry on disk
	Queued   int    // contents and ends that wait for the disk
	Appended uint64 // entries
	Rekeyed  uint64 // of them, prefix_hash_canonicalized
	Lost     uint64 // contents and ends that found no room in the queue, or no disk at the end
	Errors   uint64 // attempts to write that failed
	Failing  bool   // the last attempt failed
	Late     uint64 // answers that did not wait for the disk any longer
}

// queue is what was noted and is not yet durable.
type queue struct {
	bound      int // [MaxQueued]
	mu         sync.Mutex
	notes      []note
	noted      uint64        // notes taken in
	durable    uint64        // notes on disk, or given up
	moved      chan struct{} // closed whenever durable or Failing moves
	wake       chan struct{} // holds one when there is something to write
	stats      Stats
	remembered *remembered // nil: tombstones are off
}

// note is one change of a table.
type note struct {
	at       int64 // Unix milliseconds
	ends     []table.End
	contents []table.Content
}

func (n *note) len() int { return len(n.ends) + len(n.contents) }

func (q *queue) init() {
	q.bound = MaxQueued
	q.moved = make(chan struct{})
	q.wake = make(chan struct{}, 1)
}

// Note implements [table.Journal].
func (l *Ledger) Note(ends []table.End, contents []table.Content) {
	n := note{at: l.now(), ends: ends, contents: contents}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remembered != nil {
		for _, end := range ends {
			l.remembered.add(end.ID, end.Cause)
		}
	}
	if l.stats.Queued+n.len() > l.bound {
		l.stats.Lost += uint64(n.len())
		return
	}
	l.stats.Queued += n.len()
	l.notes = append(l.notes, n)
	l.noted++
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// maxAwaited is how many contents and ends are waited for. What is more takes the
// disk far longer than a bound that is worth waiting for.
const maxAwaited = 1_000

// Settle waits until all that was noted before is durable, for [Params.Wait] at
// most. It does not wait at all while the disk fails, or for more than a thousand
// changes.
func (l *Ledger) Settle() {
	l.mu.Lock()
	hopeless := l.stats.Queued > maxAwaited
	if hopeless {
		l.stats.Late++
	}
	l.mu.Unlock()
	if !hopeless {
		l.await(l.wait)
	}
}

// await waits for d at most. It says whether all that was noted before is on disk
// or, closed meanwhile, given up.
func (l *Ledger) await(d time.Duration) bool {
	l.mu.Lock()
	target := l.noted
	if l.durable >= target {
		l.mu.Unlock()
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for l.durable < target && !l.stats.Failing {
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
			l.mu.Lock()
			continue
		case <-timer.C:
		}
		l.mu.Lock()
		break
	}
	safe := l.durable >= target
	if !safe {
		l.stats.Late++
	}
	l.mu.Unlock()
	return safe
}

// Stats reads the counters.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// take takes the oldest notes, as many as fit one transaction. They stay queued
// until settled. nil: there are none.
func (q *queue) take() []note {
	q.mu.Lock()
	defer q.mu.Unlock()
	size, n := 0, 0
	for n < len(q.notes) && (n == 0 || size+q.notes[n].len() <= maxBatch) {
		size += q.notes[n].len()
		n++
	}
	return q.notes[:n:n]
}

// settled lets go of the oldest notes: they are durable.
func (q *queue) settled(batch []note, added tally, head uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropLocked(batch)
	q.stats.Appended += added.entries
	q.stats.Rekeyed += added.rekeyed
	q.stats.Head = head
	q.stats.Failing = false
}

// failed counts an attempt that failed.
func (q *queue) failed() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Errors++
	q.stats.Failing = true
	q.movedLocked()
	return q.stats
}

// abandon gives up all that is queued.
func (q *queue) abandon() (lost uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost = uint64(q.stats.Queued)
	q.stats.Lost += lost
	q.dropLocked(q.notes)
	return lost
}

func (q *queue) dropLocked(batch []note) {
	n := len(batch)
	for i := range batch {
		q.stats.Queued -= batch[i].len()
		batch[i] = note{}
	}
	q.notes = q.notes[n:]
	q.durable += uint64(n)
	q.movedLocked()
}

func (q *queue) movedLocked() {
	close(q.moved)
	q.moved = make(chan struct{})
}
