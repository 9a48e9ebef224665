package table

import "sync"

// MaxCarrierTargets is how many modules a targeted carrier may list.
const MaxCarrierTargets = 16

type allowance struct{}

func (r *Record) allowance(p Principal) *allowance { return nil }
func (a *allowance) permits(m ModuleID) bool       { return false }

// Cause is why a scope ended.
type Cause uint8

const (
	// CauseExpired says that its deadline passed.
	CauseExpired Cause = iota + 1
	// CauseOwnerEnded says that its owner ended, omitted or replaced it.
	CauseOwnerEnded
)

// TombstoneReader is consulted where no tombstone is in memory.
type TombstoneReader interface {
	Cause(ScopeID) (Cause, bool)
}

// Limits are the bounds of section 2; a zero field is the contract's value.
type Limits struct {
	LiveScopes, Tombstones, AttributeBytes int
}

// Config is what a table is made of.
type Config struct {
	Incarnation     string
	AuthorityOwners []string
	Limits          Limits
	Tombstones      TombstoneReader
}

// Table holds every scope of one incarnation. It is safe for concurrent use.
type Table struct {
	mu  sync.Mutex
	cfg Config
}

// New makes an empty table.
func New(cfg Config) *Table { return &Table{cfg: cfg} }

// Incarnation is the table's, 32 hex digits.
func (t *Table) Incarnation() string { return t.cfg.Incarnation }

// Join makes p known.
func (t *Table) Join(p Peer) {}

// Leave releases all that p holds: the routes and reservations that it opened
// or serves, its presence, its authority. It returns the released.
func (t *Table) Leave(p Peer) []RouteID { return nil }

// Claim is what is known of the connection that a call came on.
type Claim struct {
	Peer    Peer
	Owner   string
	Launch  Launch
	Current bool
}

// SyncCall is a decoded scope.sync.
type SyncCall struct{}

// ApplyCall is a decoded scope.apply.
type ApplyCall struct{}

// DecodeSync decodes a scope.sync body.
func DecodeSync(body []byte) (*SyncCall, *Refusal) { return &SyncCall{}, nil }

// DecodeApply decodes a scope.apply body.
func DecodeApply(body []byte) (*ApplyCall, *Refusal) { return &ApplyCall{}, nil }

// Sync judges and applies a scope.sync.
func (t *Table) Sync(c Claim, call *SyncCall, now int64) (*Applied, *Refusal) {
	return &Applied{}, nil
}

// Apply judges and applies a scope.apply.
func (t *Table) Apply(c Claim, call *ApplyCall, now int64) (*Applied, *Refusal) {
	return &Applied{}, nil
}

// Applied is what an accepted call did.
type Applied struct {
	Op         string
	Generation uint64
	Results    []RecordResult
	EndResults []EndResult
	Ended      []ScopeID
	Drains     []Drain
	Expired    []Expiry
}

// AppendReply appends the reply's body to b.
func (a *Applied) AppendReply(b []byte) []byte { return append(b, "{}"...) }

// RecordResult is what a call did with one record.
type RecordResult struct {
	Ref         string
	Epoch       uint64
	Outcome     Outcome
	Code        Code
	Message     string
	Version     uint64
	ParentState ParentState
}

// Outcome is a record's outcome.
type Outcome uint8

// The outcomes.
const (
	Created Outcome = iota + 1
	Replaced
	Updated
	Unchanged
	Refused
)

// EndResult is what a call did with one end.
type EndResult struct {
	Ref   string
	Epoch uint64
	Ended bool
}

// Reason is why a route is drained.
type Reason uint8

// The reasons.
const (
	ReasonCarrierRemoved Reason = iota + 1
	ReasonDelegationChanged
	ReasonParentEnded
	ReasonScopeEnded
)

// String is the reason's wire name.
func (r Reason) String() string {
	return [...]string{"", "scope_carrier_removed", "scope_delegation_changed", "scope_parent_ended", "scope_ended"}[r]
}

// Drain is one live route that must close. The table has taken it out already.
type Drain struct {
	Route  RouteID
	Opener Peer
	Module string
	Scope  ScopeID
	Reason Reason
}

// Expiry is one scope ended by its deadline.
type Expiry struct {
	ID       ScopeID
	Deadline uint64
	Routes   int
}

// Sweep ends every scope whose deadline is at or before now.
func (t *Table) Sweep(now int64) ([]Expiry, []Drain) { return nil, nil }

// HasDeadlines says whether any live scope has a deadline.
func (t *Table) HasDeadlines() bool { return false }

// Reservation is what [Table.Reserve] would hold.
type Reservation struct {
	Scope     Key
	Opener    Peer
	Principal Principal
	Module    string
	Provider  Peer
	Hold      bool
}

// State is what the table holds for one key. A judge must not keep or change it.
type State struct {
	Synced bool
	Live   *Scope
}

// Reserve judges and reserves.
func (t *Table) Reserve(r Reservation, judge func(State) bool) (RouteID, Tag, bool) {
	return 0, Tag{}, false
}

// Verdict is a commit's.
type Verdict uint8

const (
	// Unknown says that the reservation is gone already.
	Unknown Verdict = iota
	// Committed says that the route is live and indexed.
	Committed
	// StaleEnded says that the scope ended.
	StaleEnded
	// StaleChanged says that the record changed.
	StaleChanged
)

// Commit settles a reservation.
func (t *Table) Commit(id RouteID) Verdict { return Unknown }

// Release ends a reservation or a live route, once.
func (t *Table) Release(id RouteID) bool { return false }

// Status is describe's.
type Status uint8

// The statuses.
const (
	StatusLive Status = iota + 1
	StatusEnded
	StatusNotLive
)

// String is the status's wire name.
func (s Status) String() string { return [...]string{"", "live", "ended", "not_live"}[s] }

// Description is describe's answer.
type Description struct {
	Status      Status
	Epoch       *uint64
	OwnerSynced bool
	Scope       *Stamp
}

// Describe answers about k.
func (t *Table) Describe(k Key) Description { return Description{Status: StatusNotLive} }

// Synced says whether owner has synced.
func (t *Table) Synced(owner string) bool { return false }
