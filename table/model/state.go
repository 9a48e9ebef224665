package model

import (
	"maps"
	"slices"
)

// Limits are the bounds of section 2, lowered so that tests reach them.
type Limits struct {
	LiveScopes int
	Tombstones int
}

// Model is the whole table. Owners are module ids, principals are written as in
// reserved:core, direct and unverified, and peers are numbers of the caller's.
type Model struct {
	limits     Limits
	authorized []string
	// Remembers says that ended epochs are known elsewhere for good, past the
	// bound on tombstones.
	Remembers bool
	state
}

// New makes an empty model. authorized are the ids of scope_authority_owners.
func New(limits Limits, authorized ...string) *Model {
	return &Model{limits: limits, authorized: authorized, state: state{
		owners: map[string]owner{}, ended: map[string]string{}, joined: map[int]bool{}, routes: map[uint64]route{},
	}}
}

type state struct {
	owners   map[string]owner
	ended    map[string]string // every epoch that ended, to its cause
	joined   map[int]bool
	routes   map[uint64]route
	versions int // given out so far
	sessions int // begun so far
}

type owner struct {
	synced     bool
	authority  *authority
	live       map[string]scope
	tombstones []tombstone // oldest first
}

type authority struct {
	peer, launch int
	generation   uint64
}

type tombstone struct {
	ref   string
	epoch uint64
	cause string
}

// scope is one live session. Its number tells it from a later one of its epoch.
type scope struct {
	record  Record
	session int
	version int
	link    string // linked, pending or ended, "" without a parent
	present map[int]bool
}

// route is one admitted bind, in flight or live.
type route struct {
	owner, ref       string
	epoch            uint64
	session, version int
	opener, provider int
	principal        string
	module           string
	live, holding    bool
}

// Copy is a model of its own in the same state.
func (m *Model) Copy() *Model {
	c := *m
	c.state = m.state.copy()
	return &c
}

func (s state) copy() state {
	s.ended, s.joined, s.routes = maps.Clone(s.ended), maps.Clone(s.joined), maps.Clone(s.routes)
	owners := map[string]owner{}
	for id, o := range s.owners {
		owners[id] = o.copy()
	}
	s.owners = owners
	return s
}

func (o owner) copy() owner {
	live := map[string]scope{}
	for ref, sc := range o.live {
		sc.present = maps.Clone(sc.present)
		live[ref] = sc
	}
	o.live, o.tombstones = live, slices.Clone(o.tombstones)
	return o
}

// under is the live session of a route, if it has not ended.
func (s state) under(r route) (scope, bool) {
	sc, live := s.owners[r.owner].live[r.ref]
	return sc, live && sc.session == r.session
}

func sortedKeys[K interface{ ~string | ~int | ~uint64 }, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
