package router

import (
	"context"

	"scopeward/proxy/wire"
)

// Cursor is a place in the spawn feed of one start of the router.
type Cursor struct {
	Incarnation string `json:"daemon_incarnation"`
	Seq         uint64 `json:"seq"`
}

// Spawn is one live launch.
type Spawn struct {
	ModuleID   string `json:"module_id"`
	Generation uint64 `json:"spawn_generation"`
	PID        uint32 `json:"pid"`
	AtMS       int64  `json:"spawned_at_ms"` // Unix ms
}

// Snapshot is every live launch at one place in the feed. A swap's candidate is
// not among them before cutover; after it the incumbent is not.
type Snapshot struct {
	Cursor Cursor  `json:"cursor"`
	Live   []Spawn `json:"live"`
}

// EventKind says what happened to a launch.
type EventKind string

// The kinds of events.
const (
	Spawned EventKind = "spawned"
	Exited  EventKind = "exited"
)

// Event is one change in the feed.
type Event struct {
	Cursor     Cursor    `json:"cursor"`
	Kind       EventKind `json:"kind"`
	ModuleID   string    `json:"module_id"`
	Generation uint64    `json:"spawn_generation"`
	PID        uint32    `json:"pid"`
	ExitCode   *int      `json:"exit_code"`
	ExitSignal *int      `json:"exit_signal"`
}

// The codes with which the router refuses or ends a subscription. After each of
// them a new snapshot is the way on.
const (
	CodeCursorMismatch = "spawn_cursor_incarnation_mismatch"
	CodeCursorTooOld   = "spawn_cursor_too_old"
	CodeLagged         = "spawn_subscriber_lagged" // resubscribe from the last event received
)

// SpawnSnapshot asks who is launched now.
func (l *Link) SpawnSnapshot(ctx context.Context) (Snapshot, error) {
	var s Snapshot
	err := l.Do(ctx, wire.OpSpawnSnapshot, op(wire.OpSpawnSnapshot), &s)
	return s, err
}

// Feed is an open subscription to launches.
type Feed struct{ s *Stream }

// SpawnSubscribe follows the feed from since on. It does not wait for the
// router: a refusal is the feed's first answer.
func (l *Link) SpawnSubscribe(since Cursor) (*Feed, error) {
	body := struct {
		Op    string `json:"op"`
		Since Cursor `json:"since"`
	}{wire.OpSpawnSubscribe, since}
	s, err := l.stream(wire.OpSpawnSubscribe, body)
	if err != nil {
		return nil, err
	}
	return &Feed{s}, nil
}

// Next waits for the next event.
func (f *Feed) Next(ctx context.Context) (Event, error) {
	var e Event
	err := f.s.next(ctx, &e)
	return e, err
}

// Close ends the subscription.
func (f *Feed) Close() { f.s.Close() }
