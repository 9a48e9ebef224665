package table

import "sync"

// Config is what a table is made of.
type Config struct {
	// Incarnation names the table's life to readers: 32 hex digits, new for each
	// table.
	Incarnation string
	// AuthorityOwners are the module ids of scope_authority_owners.
	AuthorityOwners []string
	Limits          Limits
	// Tombstones is asked where no tombstone is in memory. It is called under the
	// lock and must answer from memory. nil: nothing is remembered elsewhere.
	Tombstones TombstoneReader
	// Journal is told of every change. nil: nobody is.
	Journal Journal
}

// Table holds every scope of one incarnation. It is safe for concurrent use: one
// mutex guards all of it but the feed's ring, which readers follow by itself.
type Table struct {
	incarnation string
	limits      Limits
	authorized  map[string]struct{}
	remembered  TombstoneReader
	journal     Journal
	feed        feed
	recalls     sync.Map // of *recall, by owner's id

	mu        sync.Mutex
	owners    map[string]*owner
	peers     map[Peer]*peer
	routes    map[RouteID]*route
	lastRoute RouteID
	version   uint64 // the last one given out, for the whole table
	// children are the linked and pending children of a session, whether or not
	// it is live. A link that ended is in neither index.
	children map[ScopeID]map[*scope]struct{}
	// awaiting are the children whose link is pending, by the parent's owner.
	awaiting map[string]map[*scope]struct{}
	// snapshot is the last one taken, good while no event came after it.
	snapshot *Snapshot
}

// New makes an empty table.
func New(cfg Config) *Table {
	t := &Table{
		incarnation: cfg.Incarnation,
		limits:      cfg.Limits.orContract(),
		authorized:  map[string]struct{}{},
		remembered:  cfg.Tombstones,
		journal:     cfg.Journal,
		owners:      map[string]*owner{},
		peers:       map[Peer]*peer{},
		routes:      map[RouteID]*route{},
		children:    map[ScopeID]map[*scope]struct{}{},
		awaiting:    map[string]map[*scope]struct{}{},
	}
	for _, id := range cfg.AuthorityOwners {
		t.authorized[id] = struct{}{}
	}
	t.feed.init(t.limits.Events)
	return t
}

// Incarnation is the name of the table's life, as it was configured.
func (t *Table) Incarnation() string { return t.incarnation }

// Synced says whether owner has had a full sync accepted in this incarnation.
func (t *Table) Synced(owner string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.syncedLocked(owner)
}

func (t *Table) syncedLocked(owner string) bool {
	o := t.owners[owner]
	return o != nil && o.synced
}

// ownerLocked is id's owner. One that never synced is made and not kept.
func (t *Table) ownerLocked(id string) *owner {
	if o := t.owners[id]; o != nil {
		return o
	}
	_, authorized := t.authorized[id]
	return &owner{
		id: id, principal: ReservedPrincipal(id), authorized: authorized,
		live:       map[string]*scope{},
		tombstones: newTombstones(t.limits.Tombstones),
	}
}

// bumpLocked gives s its next version. No version is given out twice.
func (t *Table) bumpLocked(s *scope) {
	t.version++
	s.Version = t.version
}
