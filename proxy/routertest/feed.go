package routertest

import (
	"fmt"

	"scopeward/proxy/wire"
)

// cursor is a place in the spawn feed of one start of the router.
type cursor struct {
	DaemonIncarnation string `json:"daemon_incarnation"`
	Seq               uint64 `json:"seq"`
}

type spawnEvent struct {
	Cursor     cursor `json:"cursor"`
	Kind       string `json:"kind"`
	ModuleID   string `json:"module_id"`
	Generation uint64 `json:"spawn_generation"`
	PID        uint32 `json:"pid"`
	ExitCode   *int32 `json:"exit_code,omitzero"`
	ExitSignal *int32 `json:"exit_signal,omitzero"`
}

// feed is the spawn feed: the retained events and who follows them.
type feed struct {
	incarnation string
	seq         uint64
	bound       int
	ring        []spawnEvent // oldest first, at most bound
	subs        map[*subscription]struct{}
}

// subscription is one held supervisor.spawn_subscribe.
type subscription struct {
	conn *conn
	corr uint64
}

func newFeed(bound int) feed {
	return feed{incarnation: randomHex(16), bound: bound, subs: map[*subscription]struct{}{}}
}

func (f *feed) at() cursor { return cursor{f.incarnation, f.seq} }

func (f *feed) emit(e spawnEvent) {
	f.seq++
	e.Cursor = f.at()
	if f.ring = append(f.ring, e); len(f.ring) > f.bound {
		f.ring = f.ring[1:]
	}
	for s := range f.subs {
		f.deliver(s, e)
	}
}

// deliver sends e to s, or ends s when its connection has no room: what was
// queued comes first, then the reason.
func (f *feed) deliver(s *subscription, e spawnEvent) {
	frame := wire.AppendFrame(nil, wire.Header{Type: wire.StreamData, Corr: s.corr}, wire.MustMarshal(e))
	if s.conn.out.offer(frame) {
		return
	}
	f.end(s)
	s.conn.out.push(wire.AppendError(nil, wire.ControlChannel, 0, s.corr, wire.ErrorBody{
		Code: "spawn_subscriber_lagged", Message: "the subscriber does not read",
		Detail: wire.MustMarshal(map[string]cursor{"first_undelivered_cursor": e.Cursor}),
	}))
}

func (f *feed) end(s *subscription) {
	delete(f.subs, s)
	if s.conn.feeds[s.corr] == s {
		delete(s.conn.feeds, s.corr)
	}
}

// cancel ends c's subscription with that corr, if it has one.
func (f *feed) cancel(c *conn, corr uint64) bool {
	s := c.feeds[corr]
	if s == nil {
		return false
	}
	f.end(s)
	c.out.push(wire.Header{Type: wire.StreamEnd, Corr: corr}.Append(nil))
	return true
}

// forget ends c's subscriptions without a word.
func (f *feed) forget(c *conn) {
	for _, s := range c.feeds {
		f.end(s)
	}
}

type liveSpawn struct {
	ModuleID    string `json:"module_id"`
	Generation  uint64 `json:"spawn_generation"`
	PID         uint32 `json:"pid"`
	SpawnedAtMS int64  `json:"spawned_at_ms"`
}

type snapshotBody struct {
	Op        string      `json:"op"`
	Cursor    cursor      `json:"cursor"`
	RingBound int         `json:"ring_bound"`
	Live      []liveSpawn `json:"live"`
}

// spawnSnapshot lists live launches. A candidate is none before its cutover.
func (r *Router) spawnSnapshot() snapshotBody {
	b := snapshotBody{Op: wire.OpSpawnSnapshot, Cursor: r.feed.at(), RingBound: r.feed.bound, Live: []liveSpawn{}}
	for _, id := range r.sortedRoster() {
		if m := r.roster[id]; m.launch != nil {
			b.Live = append(b.Live, liveSpawn{id, m.launch.Generation, m.launch.PID, m.spawnedMS})
		}
	}
	return b
}

func (r *Router) spawnSubscribe(c *conn, f wire.Frame) ([][]byte, error) {
	s, err := readShape(f.Body, "op", "since")
	if err != nil {
		return nil, err
	}
	from := r.feed.seq
	if !s.absent("since") {
		d, err := readShape(s["since"], "daemon_incarnation", "seq")
		if err != nil {
			return nil, err
		}
		incarnation, err := d.text("daemon_incarnation")
		if err != nil {
			return nil, err
		}
		if err := d.into("seq", &from); err != nil {
			return nil, err
		}
		if incarnation != r.feed.incarnation {
			return refuseBody(f, wire.ErrorBody{
				Code: "spawn_cursor_incarnation_mismatch", Message: "the cursor is another incarnation's",
				Detail: wire.MustMarshal(map[string]string{"current_daemon_incarnation": r.feed.incarnation}),
			}), nil
		}
		if oldest, ok := r.feed.missed(from); ok {
			return refuseBody(f, wire.ErrorBody{
				Code: "spawn_cursor_too_old", Message: "events after the cursor are no longer kept",
				Detail: wire.MustMarshal(map[string]cursor{"oldest_retained_cursor": oldest}),
			}), nil
		}
	}
	if c.feeds[f.Corr] != nil {
		return nil, fmt.Errorf("corr %d already holds a subscription", f.Corr)
	}
	sub := &subscription{c, f.Corr}
	r.feed.subs[sub] = struct{}{}
	c.feeds[f.Corr] = sub
	for _, e := range r.feed.ring {
		if e.Cursor.Seq > from {
			r.feed.deliver(sub, e)
		}
	}
	return nil, nil
}

// missed reports whether an event after seq is no longer kept. A seq ahead of
// the newest is accepted.
func (f *feed) missed(seq uint64) (cursor, bool) {
	if len(f.ring) == 0 || seq+1 >= f.ring[0].Cursor.Seq {
		return cursor{}, false
	}
	return f.ring[0].Cursor, true
}
