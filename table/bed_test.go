package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// start is the wall clock at which a bed begins, Unix milliseconds.
const start = 1_000_000_000_000

// bed is a table with what a test needs around it. Its owners are "core", which
// may set attributes, and any other id, which may not. Each owner's connection is
// joined at its first call and numbers its generations by itself.
type bed struct {
	*Table
	t     testing.TB
	now   int64
	peers map[string]Peer
	gens  map[string]uint64
}

func newBed(t testing.TB) *bed { return newLimitedBed(t, Limits{}) }

func newLimitedBed(t testing.TB, limits Limits) *bed {
	return &bed{
		Table: New(Config{Incarnation: strings.Repeat("a", 32), AuthorityOwners: []string{"core"}, Limits: limits}),
		t:     t, now: start, peers: map[string]Peer{}, gens: map[string]uint64{},
	}
}

// peer is the joined peer called name.
func (b *bed) peer(name string) Peer {
	p, known := b.peers[name]
	if !known {
		p = Peer{Conn: uint64(len(b.peers) + 1), Registration: 1}
		b.peers[name] = p
		b.Join(p)
	}
	return p
}

// leave makes name's peer leave. A later use of the name is another connection.
func (b *bed) leave(name string) []RouteID {
	p := b.peer(name)
	b.peers[name+" that left"] = p
	delete(b.peers, name)
	return b.Leave(p)
}

func (b *bed) claim(owner string) Claim {
	return Claim{Peer: b.peer(owner), Owner: owner, Launch: 1, Current: true}
}

func (b *bed) nextGen(owner string) uint64 {
	b.gens[owner]++
	return b.gens[owner]
}

// sync sends the owner's full set with its next generation and wants it accepted.
func (b *bed) sync(owner string, lines ...string) *Applied {
	b.t.Helper()
	a, refused := b.trySync(b.claim(owner), b.nextGen(owner), lines...)
	require.Nil(b.t, refused)
	return a
}

// apply sends a delta with the owner's next generation and wants it accepted.
func (b *bed) apply(owner string, lines ...string) *Applied {
	b.t.Helper()
	a, refused := b.tryApply(b.claim(owner), b.nextGen(owner), lines...)
	require.Nil(b.t, refused)
	return a
}

func (b *bed) trySync(c Claim, generation uint64, lines ...string) (*Applied, *Refusal) {
	call, refused := DecodeSync([]byte(syncBody(generation, lines...)))
	if refused != nil {
		return nil, refused
	}
	return b.Table.Sync(c, call, b.now)
}

func (b *bed) tryApply(c Claim, generation uint64, lines ...string) (*Applied, *Refusal) {
	call, refused := DecodeApply([]byte(applyBody(generation, lines...)))
	if refused != nil {
		return nil, refused
	}
	return b.Table.Apply(c, call, b.now)
}

// refusedSync wants a full set refused whole and nothing of the table moved.
func (b *bed) refusedSync(code Code, owner string, lines ...string) string {
	b.t.Helper()
	before := b.dump()
	_, refused := b.trySync(b.claim(owner), b.gens[owner]+1, lines...)
	require.NotNil(b.t, refused, "accepted")
	require.Equal(b.t, code, refused.Code, refused.Message)
	require.Equal(b.t, before, b.dump(), "a refused call changed the table")
	return refused.Message
}

// refusedApply is refusedSync for a delta.
func (b *bed) refusedApply(code Code, owner string, lines ...string) string {
	b.t.Helper()
	before := b.dump()
	_, refused := b.tryApply(b.claim(owner), b.gens[owner]+1, lines...)
	require.NotNil(b.t, refused, "accepted")
	require.Equal(b.t, code, refused.Code, refused.Message)
	require.Equal(b.t, before, b.dump(), "a refused call changed the table")
	return refused.Message
}

// reserve admits a bind without a judge's questions.
func (b *bed) reserve(scope, principal, module string, hold bool) RouteID {
	b.t.Helper()
	return b.reserveFor("opener of "+principal, scope, principal, module, hold)
}

// reserveFor is reserve on the opener connection called opener.
func (b *bed) reserveFor(opener, scope, principal, module string, hold bool) RouteID {
	b.t.Helper()
	r := Reservation{
		Scope: parseKey(scope), Opener: b.peer(opener), Principal: parsePrincipal(principal),
		Module: module, Provider: b.peer("module " + module), Hold: hold,
	}
	id, _, ok := b.Reserve(r, func(s State) bool { return s.Live != nil })
	require.True(b.t, ok, "no live scope %s", scope)
	return id
}

// open admits a bind and commits it.
func (b *bed) open(scope, principal, module string) RouteID {
	b.t.Helper()
	id := b.reserve(scope, principal, module, false)
	require.Equal(b.t, Committed, b.Commit(id))
	return id
}

func parseKey(s string) Key {
	owner, ref, _ := strings.Cut(s, "/")
	return Key{Owner: parsePrincipal(owner), Ref: ref}
}

func (b *bed) describe(scope string) Description { return b.Table.Describe(parseKey(scope)) }

// version is the live version of a scope, 0 for none.
func (b *bed) version(scope string) uint64 {
	k := parseKey(scope)
	for _, s := range b.Scopes(k.Owner.ModuleID) {
		if s.ID.Ref == k.Ref {
			return s.Version
		}
	}
	return 0
}

// live is the epoch under which a scope is live, "" for none.
func (b *bed) live(scope string) string {
	if d := b.describe(scope); d.Status == StatusLive {
		return fmt.Sprint(*d.Epoch)
	}
	return ""
}

// link is the state of a live scope's parent link.
func (b *bed) link(scope string) string {
	b.t.Helper()
	d := b.describe(scope)
	require.NotNil(b.t, d.Scope, "%s is not live", scope)
	return d.Scope.ParentState.String()
}

func (b *bed) dump() string {
	var w strings.Builder
	b.Dump(&w)
	return w.String()
}

// outcomesOf is what a call did with each record, in request order: the outcome, or
// the code of a refusal.
func outcomesOf(a *Applied) []string {
	list := []string{}
	for _, r := range a.Results {
		if r.Outcome == Refused {
			list = append(list, string(r.Code))
		} else {
			list = append(list, r.Outcome.String())
		}
	}
	return list
}

// outcome is what a call did with its only record.
func outcome(a *Applied) string { return strings.Join(outcomesOf(a), " ") }

// endedRefs is the ended list as ref@epoch.
func endedRefs(a *Applied) []string {
	list := []string{}
	for _, id := range a.Ended {
		list = append(list, fmt.Sprintf("%s@%d", id.Ref, id.Epoch))
	}
	return list
}

// drained is each drained route with its reason.
func drained(drains []Drain) map[RouteID]string {
	m := map[RouteID]string{}
	for _, d := range drains {
		m[d.Route] = d.Reason.String()
	}
	return m
}

func repeat(n int, line func(int) string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line(i)
	}
	return lines
}

func ids(list ...RouteID) []RouteID { slices.Sort(list); return list }
