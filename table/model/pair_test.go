package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"scopeward/table"
	"scopeward/table/model"
)

// testingT is what a pair needs of a test, plain or rapid's.
type testingT interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
}

// start is the wall clock at which a pair begins, Unix milliseconds.
const start = 1_000_000_000_000

var (
	owners  = []string{"aft", "core", "hist"} // core may set attributes
	bounds  = model.Limits{LiveScopes: 4, Tombstones: 2}
	modules = []string{"plexus", "tool"}
)

// pair drives the table and the model with the same commands and wants them to
// say the same and to be in the same state.
type pair struct {
	t     testingT
	real  *table.Table
	model *model.Model
	now   int64
	peers map[string]int // those joined, by name
	conns int
	// current is each owner's launch whose nonce the supervisor records.
	current map[string]int
	// versions are the tags last seen of each live scope, the table's beside the
	// model's: the numbers differ, their moves may not.
	versions map[string]tags
	last     uint64         // route
	met      map[string]int // what the table has answered, and how often
	reader   reader
	journal  *journal
}

// journal keeps what the table tells of its changes, as a ledger does. When it
// remembers, it answers for ended epochs too.
type journal struct {
	notes []string
	ended map[string]table.Cause
}

// Note is told of one change under the table's lock.
func (j *journal) Note(ends []table.End, contents []table.Content) {
	for _, e := range ends {
		id := fmt.Sprintf("%s/%s@%d", e.ID.Owner.ModuleID, e.ID.Ref, e.ID.Epoch)
		j.notes = append(j.notes, id+" "+e.Cause.String())
		j.ended[id] = e.Cause
	}
	for _, c := range contents {
		j.notes = append(j.notes, fmt.Sprintf("%s/%s@%d %s", c.ID.Owner.ModuleID, c.ID.Ref, c.ID.Epoch, c.Outcome))
	}
}

// Cause answers for an epoch that memory may have forgotten.
func (j *journal) Cause(id table.ScopeID) (table.Cause, bool) {
	c, ended := j.ended[fmt.Sprintf("%s/%s@%d", id.Owner.ModuleID, id.Ref, id.Epoch)]
	return c, ended
}

// told wants the journal to have been told of exactly this since the last time.
func (p *pair) told(owner string, expired []model.Expiry, ended []model.End, c command, results []model.Result, stored []model.End) {
	p.t.Helper()
	want := []string{}
	for _, e := range expired {
		want = append(want, fmt.Sprintf("%s/%s@%d expired", e.Owner, e.End.Ref, e.End.Epoch))
	}
	for _, e := range ended {
		want = append(want, fmt.Sprintf("%s/%s@%d owner_ended", owner, e.Ref, e.Epoch))
	}
	for i, res := range results {
		if id := (model.End{Ref: c.records[i].Ref, Epoch: c.records[i].Epoch}); slices.Contains(stored, id) {
			want = append(want, fmt.Sprintf("%s/%s@%d %s", owner, id.Ref, id.Epoch, res.Outcome))
		}
	}
	p.same(want, append([]string{}, p.journal.notes...), "what the journal is told")
	p.journal.notes = nil
}

type tags struct {
	session string // owner/ref@epoch
	real    uint64
	model   int
}

// newPair makes a pair. One that remembers never forgets an ended epoch.
func newPair(t testingT, remembers bool) *pair {
	j := &journal{ended: map[string]table.Cause{}}
	cfg := table.Config{
		Incarnation: strings.Repeat("a", 32), AuthorityOwners: []string{"core"}, Journal: j,
		Limits: table.Limits{LiveScopes: bounds.LiveScopes, Tombstones: bounds.Tombstones, Events: 6},
	}
	m := model.New(bounds, "core")
	if m.Remembers = remembers; remembers {
		cfg.Tombstones = j
	}
	return &pair{
		t: t, real: table.New(cfg), model: m, now: start, journal: j,
		peers: map[string]int{}, current: map[string]int{"aft": 1, "core": 1, "hist": 1},
		versions: map[string]tags{}, met: map[string]int{},
	}
}

// peer is the joined peer called name. After a leave the name is a new peer's.
func (p *pair) peer(name string) int {
	n, joined := p.peers[name]
	if !joined {
		p.conns++
		n = p.conns
		p.peers[name] = n
		p.real.Join(peerOf(n))
		p.model.Join(n)
	}
	return n
}

func peerOf(n int) table.Peer { return table.Peer{Conn: uint64(n), Registration: 1} }

func principalOf(s string) table.Principal {
	switch s {
	case "direct":
		return table.Principal{Kind: table.Direct}
	case "unverified":
		return table.Principal{Kind: table.Unverified}
	}
	return table.ReservedPrincipal(strings.TrimPrefix(s, "reserved:"))
}

// do runs one command on both.
func (p *pair) do(c command) {
	p.t.Helper()
	p.t.Logf("%s", c)
	switch c.op {
	case "sync", "apply":
		p.call(c)
	case "open":
		p.open(c)
	case "commit":
		v := p.real.Commit(table.RouteID(c.route))
		real := string(v.Code())
		if real == "" {
			real = map[table.Verdict]string{table.Committed: "committed", table.Gone: "gone"}[v]
		}
		p.met["commit "+real]++
		p.same(p.model.Commit(c.route), real, "verdict")
	case "release":
		p.same(p.model.Release(c.route), p.real.Release(table.RouteID(c.route)), "released")
	case "leave":
		n := p.peer(c.peer)
		delete(p.peers, c.peer)
		p.same(fmt.Sprint(p.model.Leave(n)), fmt.Sprint(p.real.Leave(peerOf(n))), "routes released")
	case "promote":
		p.current[c.owner]++
	case "clock":
		p.now += c.ms
	case "sweep":
		expired, drains := p.model.Sweep(p.now)
		realExpired, realDrains := p.real.Sweep(p.now)
		p.same(expiredText(expired), realExpiredText(realExpired), "expiries")
		p.same(drainText(drains), realDrainText(realDrains), "drains")
		p.meet(realDrains, realExpired)
		p.told("", expired, nil, c, nil, nil)
	}
	p.compare()
}

func (p *pair) same(want, got any, what string) {
	p.t.Helper()
	require.Equal(p.t, want, got, "%s: the model's is expected, the table's is actual", what)
}

func (p *pair) call(c command) {
	p.t.Helper()
	peer := p.peer(c.peer)
	current := c.launch == p.current[c.owner]
	claim := table.Claim{Peer: peerOf(peer), Owner: c.owner, Launch: table.Launch(c.launch), Current: current}
	var real *table.Applied
	var refused *table.Refusal
	if c.op == "sync" {
		call, malformed := table.DecodeSync(c.body())
		require.Nil(p.t, malformed)
		real, refused = p.real.Sync(claim, call, p.now)
	} else {
		call, malformed := table.DecodeApply(c.body())
		require.Nil(p.t, malformed)
		real, refused = p.real.Apply(claim, call, p.now)
	}
	modelClaim := model.Claim{Peer: peer, Owner: c.owner, Launch: c.launch, Current: current}
	var reply model.Reply
	var code string
	if c.op == "sync" {
		reply, code = p.model.Sync(modelClaim, c.generation, c.records, p.now)
	} else {
		reply, code = p.model.Apply(modelClaim, c.generation, c.records, c.ends, p.now)
	}
	realCode := ""
	if refused != nil {
		realCode = string(refused.Code)
	}
	p.met["call "+realCode]++
	p.same(code, realCode, "refusal of the call")
	if refused != nil {
		return
	}
	for _, r := range real.Results {
		p.met[strings.TrimSpace(r.Outcome.String()+" "+string(r.Code))]++
		if strings.Contains(r.Message, "cycle") {
			p.met["refused for a cycle"]++
		}
	}
	for _, e := range real.EndResults {
		p.met[fmt.Sprintf("end %t", e.Ended)]++
	}
	p.meet(real.Drains, real.Expired)
	p.same(replyText(c, reply), realReplyText(real), "reply")
	p.same(drainText(reply.Drains), realDrainText(real.Drains), "drains")
	p.same(expiredText(reply.Expired), realExpiredText(real.Expired), "expiries")
	p.told(c.owner, reply.Expired, reply.Ended[len(reply.Expired):], c, reply.Results, reply.Stored)
	stored := []string{}
	for _, content := range real.Contents() {
		stored = append(stored, fmt.Sprintf("%s@%d", content.ID.Ref, content.ID.Epoch))
	}
	p.same(endsText(reply.Stored), strings.Join(stored, " "), "contents stored")
}

func (p *pair) meet(drains []table.Drain, expired []table.Expiry) {
	for _, d := range drains {
		p.met["drain "+d.Reason.String()]++
	}
	p.met["expired"] += len(expired)
}

// open asks both whether an open is let in. The judge is this test's: it reads
// what the table shows it.
func (p *pair) open(c command) {
	p.t.Helper()
	o := c.open
	o.Opener, o.Provider = p.peer(c.opener), p.peer(c.provider)
	r := table.Reservation{
		Scope:  table.Key{Owner: table.ReservedPrincipal(o.Owner), Ref: o.Ref},
		Opener: peerOf(o.Opener), Provider: peerOf(o.Provider),
		Principal: principalOf(o.Principal), Module: o.Module, Hold: o.Hold,
	}
	id, tag, ok := p.real.Reserve(r, func(s table.State) bool {
		if s.Live == nil || s.Live.ID.Epoch != o.Epoch || s.Live.Record.Passed(p.now) {
			return false
		}
		rec := s.Live.Record
		if r.Principal != r.Scope.Owner && !rec.Permits(r.Principal, o.Module) {
			return false
		}
		return rec.BindProof == nil || r.Principal.Reserved() || fmt.Sprintf("%x", rec.BindProof[:]) == o.ProofHash
	})
	p.met[fmt.Sprintf("open %t", ok)]++
	p.same(p.model.Reserve(uint64(id), o, p.now), ok, "admission")
	if ok {
		p.last = uint64(id)
		p.same(o.Epoch, tag.Epoch, "captured epoch")
		require.Equal(p.t, p.versions[o.Owner+"/"+o.Ref].real, tag.Version, "captured version")
	}
}

// compare wants both in the same state.
func (p *pair) compare() {
	p.t.Helper()
	require.Empty(p.t, p.real.Invariants())
	p.same(p.model.HasDeadlines(), p.real.HasDeadlines(), "deadlines")
	realOwners := map[string]string{}
	for _, o := range p.real.Owners() {
		authority := "free"
		if o.Authority != nil {
			authority = fmt.Sprintf("%d generation %d", o.Authority.Conn, o.Generation)
		}
		realOwners[o.ID] = fmt.Sprintf("synced=%t authority=%s live=%d tombstones=%d", o.Synced, authority, o.Live, o.Tombstones)
	}
	for _, id := range owners {
		if !p.real.Synced(id) {
			realOwners[id] = "synced=false authority=free live=0 tombstones=0"
		}
		p.same(p.model.Owner(id), realOwners[id], "owner "+id)
		p.compareScopes(id)
	}
	p.reader.follow(p)
}

func (p *pair) compareScopes(id string) {
	p.t.Helper()
	modelScopes, realScopes := p.model.Scopes(id), p.real.Scopes(id)
	var want, got []string
	for _, s := range realScopes {
		p.met["link "+s.ParentState.String()]++
		p.met[fmt.Sprintf("holders %d", s.Holders)]++
	}
	for _, s := range modelScopes {
		want = append(want, fmt.Sprintf("%s link=%s routes=%d pending=%d holders=%d", s.Ref, s.Link, s.Routes, s.Pending, s.Holders))
	}
	for _, s := range realScopes {
		got = append(got, fmt.Sprintf("%s link=%s routes=%d pending=%d holders=%d", s.ID.Ref, s.ParentState, s.Routes, s.Pending, s.Holders))
	}
	p.same(want, got, "scopes of "+id)
	for _, ref := range refs {
		d := p.real.Describe(table.Key{Owner: table.ReservedPrincipal(id), Ref: ref})
		p.same(p.model.Describe(id, ref), describeText(d), "describe "+id+"/"+ref)
	}
	for i, s := range realScopes {
		key := id + "/" + s.ID.Ref
		now := tags{session: fmt.Sprintf("%s@%d", key, s.ID.Epoch), real: s.Version, model: modelScopes[i].Version}
		before := p.versions[key]
		p.same(now.model != before.model, now.real != before.real, "moved the version of "+key)
		require.GreaterOrEqual(p.t, now.real, before.real, "the version of %s fell", key)
		p.versions[key] = now
	}
}

func replyText(c command, r model.Reply) string {
	var b strings.Builder
	for i, res := range r.Results {
		fmt.Fprintf(&b, "%s@%d %s live=%t %s\n", c.records[i].Ref, c.records[i].Epoch, res.Outcome, res.Version != 0, res.Link)
	}
	for i, ended := range r.Ends {
		fmt.Fprintf(&b, "end %s@%d %t\n", c.ends[i].Ref, c.ends[i].Epoch, ended)
	}
	return b.String() + "ended " + endsText(r.Ended)
}

func realReplyText(a *table.Applied) string {
	var b strings.Builder
	for _, r := range a.Results {
		outcome := r.Outcome.String()
		if r.Outcome == table.Refused {
			outcome = string(r.Code)
		}
		fmt.Fprintf(&b, "%s@%d %s live=%t %s\n", r.Ref, r.Epoch, outcome, r.Version != 0, r.ParentState)
	}
	for _, e := range a.EndResults {
		fmt.Fprintf(&b, "end %s@%d %t\n", e.Ref, e.Epoch, e.Ended)
	}
	ended := []string{}
	for _, id := range a.Ended {
		ended = append(ended, fmt.Sprintf("%s@%d", id.Ref, id.Epoch))
	}
	return b.String() + "ended " + strings.Join(ended, " ")
}

func endsText(ends []model.End) string {
	list := []string{}
	for _, e := range ends {
		list = append(list, fmt.Sprintf("%s@%d", e.Ref, e.Epoch))
	}
	return strings.Join(list, " ")
}

func drainText(drains []model.Drain) map[uint64]string {
	m := map[uint64]string{}
	for _, d := range drains {
		m[d.Route] = d.Reason
	}
	return m
}

func realDrainText(drains []table.Drain) map[uint64]string {
	m := map[uint64]string{}
	for _, d := range drains {
		m[uint64(d.Route)] = d.Reason.String()
	}
	return m
}

func expiredText(list []model.Expiry) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s/%s@%d routes=%d\n", e.Owner, e.End.Ref, e.End.Epoch, e.Routes)
	}
	return b.String()
}

func realExpiredText(list []table.Expiry) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s/%s@%d routes=%d\n", e.ID.Owner.ModuleID, e.ID.Ref, e.ID.Epoch, e.Routes)
	}
	return b.String()
}

func describeText(d table.Description) string {
	switch d.Status {
	case table.StatusLive:
		return fmt.Sprintf("live %d synced=%t %s", *d.Epoch, d.OwnerSynced, stampText(*d.Scope))
	case table.StatusEnded:
		return fmt.Sprintf("ended %d synced=%t", *d.Epoch, d.OwnerSynced)
	}
	return fmt.Sprintf("not_live synced=%t", d.OwnerSynced)
}

func stampText(s table.Stamp) string {
	parent := "none"
	if s.Parent != nil {
		parent = fmt.Sprintf("%s/%s@%d", s.Parent.Owner, s.Parent.Ref, s.Parent.Epoch)
	}
	expires := "never"
	if s.ExpiresAtMS != nil {
		expires = fmt.Sprint(*s.ExpiresAtMS)
	}
	return fmt.Sprintf("%s %s %s parent=%s %s [%s] authorized=%t expires=%s", s.Owner.ModuleID, s.Ref, s.Kind,
		parent, s.ParentState, attributeText(s.Attributes), s.OwnerAuthorized, expires)
}

func attributeText(a table.Attributes) string {
	m := map[string]string{}
	for name, v := range map[string]*string{"agent_id": a.AgentID, "flow_id": a.FlowID, "run_id": a.RunID} {
		if v != nil {
			m[name] = *v
		}
	}
	if a.Delegates {
		m["delegates"] = "true"
	}
	list := []string{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return strings.Join(list, " ")
}
