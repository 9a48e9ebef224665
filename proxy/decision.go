package proxy

import (
	"time"

	"scopeward/table"
)

// DecisionKind says what was decided.
type DecisionKind uint8

const (
	// Admitted is a scoped bind sent on with its stamp.
	Admitted DecisionKind = iota + 1
	// Refused is a scoped open refused at the bind.
	Refused
	// Committed is a route that became live.
	Committed
	// Stale is an ack answered scope_changed or scope_ended.
	Stale
	// Rejected is a stamped bind that the module itself refused.
	Rejected
	// Drained is a live route closed because its authority went.
	Drained
	// Synced is an accepted scope.sync.
	Synced
	// Applied is an accepted scope.apply.
	Applied
	// CallRefused is an owner's call refused whole.
	CallRefused
	// Expired is a scope ended by its deadline.
	Expired
	// PeerRefused is a Hello or an open whose nonce is not its process's.
	PeerRefused
)

// String is the kind's name in logs, metrics and the event stream.
func (k DecisionKind) String() string {
	names := [...]string{"unknown", "admitted", "refused", "committed", "stale", "rejected", "drained",
		"synced", "applied", "call_refused", "expired", "peer_refused"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[0]
}

// Decision is one decision, as a record for the operator. It holds no secret.
type Decision struct {
	Kind      DecisionKind
	AtMS      int64  // Unix milliseconds, wall clock
	Conn      ConnID // the connection it was decided on
	Opener    ConnID // the opener's connection, when that is another
	Principal table.Principal
	Scope     table.ScopeID
	Target    string // module id
	Rule      string // the contract's section and the rule that decided
	Code      string // "" when nothing was refused
	Message   string
	Routes    int            // live routes closed
	Deadline  int64          // of an expiry, Unix milliseconds
	Elapsed   time.Duration  // of an owner's call, of admission or commit
	Digest    table.Digest   // of the scope's record, zero when none was live
	Applied   *table.Applied // of an accepted call; it must not be changed
}

// Recorder takes every decision, on every path. It must not block.
type Recorder interface{ Record(Decision) }

func (s *Session) record(d Decision) {
	d.Conn, d.AtMS = s.id, s.world.now()
	s.world.recorder.Record(d)
}
