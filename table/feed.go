package table

import "sync"

// EventKind is what an event tells (section 5, scope.subscribe).
type EventKind uint8

const (
	// EventCreated says that a session began.
	EventCreated EventKind = iota + 1
	// EventEnded says that a session ended.
	EventEnded
	// EventChanged says that carriers, delegates, agent_id, flow_id, run_id or
	// the parent link of a live session changed.
	EventChanged
	// EventSynced says that an owner's first sync of this incarnation was
	// accepted. It carries the owner's whole live set and stands for the creation
	// of each.
	EventSynced
)

var eventKinds = [...]string{EventCreated: "created", EventEnded: "ended", EventChanged: "changed", EventSynced: "synced"}

// String is the kind's wire name.
func (k EventKind) String() string {
	if int(k) < len(eventKinds) {
		return eventKinds[k]
	}
	return ""
}

// Event is one entry of the change feed. Its records are shared.
type Event struct {
	Seq    uint64 // one more than the event before it, from 1
	Kind   EventKind
	Owner  Principal
	Scope  Scope   // as it was at the event; zero for synced
	Scopes []Scope // for synced, by ref
}

// Snapshot is the live scopes after every event up to Seq and before the next.
type Snapshot struct {
	Seq    uint64
	Synced []Principal // owners that have synced in this incarnation, in order
	Scopes []Scope     // by id
}

// feed is a bounded ring of events. It has a lock of its own, so that readers
// never stand in the way of a sync for longer than a copy of a few events.
type feed struct {
	mu    sync.Mutex
	bound int
	ring  []Event // event Seq is at Seq % len once the ring is full
	last  uint64  // Seq of the newest
	given uint64  // up to this Seq they were forgotten
	woken chan struct{}
}

func (f *feed) init(bound int) { f.bound, f.woken = bound, make(chan struct{}) }

func (f *feed) push(events []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.last++
		e.Seq = f.last
		if len(f.ring) < f.bound {
			f.ring = append(f.ring, e)
		} else {
			f.ring[(f.last-1)%uint64(f.bound)] = e
		}
	}
}

// wake wakes whoever waits for events. It is called off the table's lock.
func (f *feed) wake() {
	f.mu.Lock()
	close(f.woken)
	f.woken = make(chan struct{})
	f.mu.Unlock()
}

// Events copies into buf the events after seq, oldest first, and returns them.
// It is false when the ring no longer holds the next one, or when seq has not
// been given out: the reader takes a [Snapshot] and goes on from there.
func (t *Table) Events(seq uint64, buf []Event) ([]Event, bool) {
	f := &t.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.oldestLocked()
	if seq > f.last || seq+1 < oldest {
		return nil, false
	}
	n := min(uint64(len(buf)), f.last-seq)
	for i := range n {
		buf[i] = f.ring[(seq+i)%uint64(f.bound)]
	}
	return buf[:n], true
}

// FeedBounds are the sequence numbers of the oldest event that the ring holds and
// of the newest. Without events the oldest is one more than the newest.
func (t *Table) FeedBounds() (oldest, newest uint64) {
	f := &t.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.oldestLocked(), f.last
}

func (f *feed) oldestLocked() uint64 {
	return max(f.last-uint64(len(f.ring)), f.given) + 1
}

// Forget gives up the events up to seq, and the records that only they keep: for
// the table's one reader, which has what it made of them.
func (t *Table) Forget(seq uint64) {
	f := &t.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := f.oldestLocked(); s <= min(seq, f.last); s++ {
		f.ring[(s-1)%uint64(f.bound)] = Event{}
		f.given = s
	}
}

// Wake is closed when events come after those that a reader has asked for since
// taking it: take it, read [Table.Events], then wait.
func (t *Table) Wake() <-chan struct{} {
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	return t.feed.woken
}

// Snapshot is the live set at one sequence number. Readers share it: it must not
// be changed. One that follows a snapshot by [Table.Events] from its Seq has
// neither a gap nor a repeat.
func (t *Table) Snapshot() *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, newest := t.FeedBounds()
	if t.snapshot != nil && t.snapshot.Seq == newest {
		return t.snapshot
	}
	snap := &Snapshot{Seq: newest}
	for _, o := range t.ownersLocked() {
		if o.synced {
			snap.Synced = append(snap.Synced, o.principal)
		}
		snap.Scopes = append(snap.Scopes, o.scopesLocked()...)
	}
	t.snapshot = snap
	return snap
}

// publishLocked puts the batch into the feed: ends first, so that a reader never
// sees two sessions of one ref.
func (b *batch) publishLocked() {
	n := len(b.ended) + len(b.created) + len(b.changed)
	if b.synced != nil {
		n += 1 - len(b.created)
	}
	events := make([]Event, 0, n)
	add := func(kind EventKind, scopes []*scope) {
		for _, s := range scopes {
			events = append(events, Event{Kind: kind, Owner: s.ID.Owner, Scope: s.Scope})
		}
	}
	add(EventEnded, b.ended)
	if b.synced != nil {
		// Whatever it has, its first set has created.
		events = append(events, Event{Kind: EventSynced, Owner: b.synced.principal, Scopes: copies(b.created)})
	} else {
		add(EventCreated, b.created)
	}
	for _, s := range b.changed {
		s.noted = false
	}
	add(EventChanged, b.changed)
	b.publishes = len(events) > 0
	if b.publishes {
		b.t.feed.push(events)
		b.t.snapshot = nil
	}
}

// wake tells readers of the feed, off the table's lock.
func (b *batch) wake() {
	if b.publishes {
		b.t.feed.wake()
	}
}
