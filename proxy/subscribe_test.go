package proxy

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// reader is a subscriber as the contract's section 5 has it: it holds what the
// feed tells and nothing else.
type reader struct {
	e       *end
	corr    uint64
	live    map[string]uint64 // "owner/ref" to epoch
	synced  map[string]bool
	pending map[string]uint64 // pages of a set that is not whole yet
	coming  map[string]bool   // who has synced, by those pages
	last    *cursor
	ended   string // code of a terminal error
	heard   []string
	loose   bool // what it holds is not what was before the events that it is sent
	codes   map[string]int
}

// feedFrame is any frame of the feed.
type feedFrame struct {
	Cursor *cursor           `json:"cursor"`
	Kind   string            `json:"kind"`
	Owner  table.Principal   `json:"owner"`
	Ref    string            `json:"ref"`
	Epoch  uint64            `json:"scope_epoch"`
	Synced []table.Principal `json:"owners_synced"`
	Scopes []stampHead       `json:"scopes"`
	Scope  *stampHead        `json:"scope"`
	More   bool              `json:"more"`
	Code   string            `json:"code"`
}

type stampHead struct {
	Owner table.Principal `json:"owner"`
	Ref   string          `json:"ref"`
	Epoch uint64          `json:"scope_epoch"`
}

func (h stampHead) key() string { return h.Owner.ModuleID + "/" + h.Ref }

func newReader(e *end) *reader {
	return &reader{e: e, live: map[string]uint64{}, synced: map[string]bool{}, codes: map[string]int{}}
}

func (r *reader) subscribe(more doc) {
	r.e.r.corr++
	r.corr, r.ended, r.pending = 1000+r.e.r.corr, "", nil
	d := doc{"op": wire.OpScopeSubscribe}
	for k, v := range more {
		d[k] = v
	}
	r.e.fromPeer(frame(wire.Request, r.corr, d))
}

// again subscribes since the last cursor, or without one.
func (r *reader) again() {
	if r.last == nil {
		r.subscribe(nil)
		return
	}
	r.subscribe(doc{"since": r.last})
}

func (r *reader) cancel() {
	r.e.fromPeer(wire.Header{Type: wire.Cancel, Corr: r.corr}.Append(nil))
	r.read()
}

// read takes what has come. It leaves what does not fit one burst.
func (r *reader) read() {
	r.e.r.world.render()
	r.take(r.e.toPeer())
}

// room says that everything written has been taken, as a driver does, and lets
// one burst more be written.
func (r *reader) room() bool {
	more := r.e.s.Unsent(0)
	if more {
		r.e.s.Handle(feedEvent{})
	}
	return more
}

// readAll reads as a peer does that keeps up.
func (r *reader) readAll() {
	r.read()
	for r.room() {
		r.read()
	}
}

func (r *reader) take(frames []wire.Frame) {
	t := r.e.r.t
	for _, f := range frames {
		if f.Corr != r.corr || f.Type == wire.StreamEnd {
			continue
		}
		var d feedFrame
		require.NoError(t, json.Unmarshal(f.Body, &d))
		require.Zero(t, f.Flags)
		if f.Type == wire.Error {
			r.ended = d.Code
			r.codes[d.Code]++
			continue
		}
		require.Equal(t, wire.StreamData, f.Type)
		require.Empty(t, r.ended, "nothing comes after the end")
		r.hear(&d)
	}
}

func (r *reader) hear(d *feedFrame) {
	t := r.e.r.t
	require.Equal(t, !d.More, d.Cursor != nil, "the cursor comes with what is whole")
	if d.Cursor != nil {
		if r.last != nil && d.Kind != "snapshot" {
			require.Greater(t, d.Cursor.Seq, r.last.Seq, "no repeat")
		}
		r.last = d.Cursor
	}
	key := stampHead{d.Owner, d.Ref, d.Epoch}.key()
	switch d.Kind {
	case "snapshot", "synced":
		if r.pending == nil {
			r.pending, r.coming = map[string]uint64{}, map[string]bool{}
		}
		for _, o := range d.Synced {
			r.coming[o.ModuleID] = true
		}
		for _, s := range d.Scopes {
			require.NotContains(t, r.pending, s.key())
			r.pending[s.key()] = s.Epoch
		}
		if d.More {
			return
		}
		if d.Kind == "snapshot" {
			r.live, r.synced = r.pending, r.coming
		} else {
			require.False(t, r.synced[d.Owner.ModuleID], "the first sync is told once")
			r.synced[d.Owner.ModuleID] = true
			for k := range r.live {
				require.False(t, strings.HasPrefix(k, d.Owner.ModuleID+"/"))
			}
			for k, v := range r.pending {
				r.live[k] = v
			}
		}
		r.pending = nil
	case "created", "changed":
		_, has := r.live[key]
		require.True(t, r.loose || has == (d.Kind == "changed"), "no gap: %s %s", d.Kind, key)
		require.Equal(t, stampHead{d.Owner, d.Ref, d.Epoch}, *d.Scope)
		r.live[key] = d.Epoch
	case "ended":
		require.True(t, r.loose || d.Epoch == r.live[key], "no gap: ended %s", key)
		require.Nil(t, d.Scope)
		delete(r.live, key)
	default:
		require.Fail(t, "an unknown kind", d.Kind)
	}
	r.heard = append(r.heard, fmt.Sprintf("%s %s@%d", d.Kind, key, d.Epoch))
}

// truth is the table's live set, and who has synced.
func (r *rig) truth() (map[string]uint64, map[string]bool) {
	live, synced := map[string]uint64{}, map[string]bool{}
	snap := r.world.Table.Snapshot()
	for _, s := range snap.Scopes {
		live[s.ID.Owner.ModuleID+"/"+s.ID.Ref] = s.ID.Epoch
	}
	for _, p := range snap.Synced {
		synced[p.ModuleID] = true
	}
	return live, synced
}

// knows compares a reader with the table.
func (r *reader) knows(t require.TestingT) {
	live, synced := r.e.r.truth()
	require.Equal(t, live, r.live)
	require.Equal(t, synced, r.synced)
}

// quick makes changes with no session and no JSON maps between, for a test of
// many.
type quick struct {
	r          *rig
	peer       table.Peer
	owner      string
	generation uint64
}

func (r *rig) quick(owner string) *quick {
	q := &quick{r: r, peer: table.Peer{Conn: ConnID(1<<32 + len(r.ends) + len(owner)), Registration: 1}, owner: owner}
	r.world.Table.Join(q.peer)
	return q
}

// sync sends a full set of refs with their epochs, "ref@epoch".
func (q *quick) sync(refs ...string) {
	q.generation++
	b := fmt.Appendf(nil, `{"op":"scope.sync","generation":%d,"scopes":[`, q.generation)
	for i, ref := range refs {
		name, epoch, _ := strings.Cut(ref, "@")
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"ref":%q,"scope_epoch":%s,"kind":"head"}`, name, epoch)
	}
	call, refusal := table.DecodeSync(append(b, "]}"...))
	require.Nil(q.r.t, refusal)
	claim := table.Claim{Peer: q.peer, Owner: q.owner, Launch: 1, Current: true}
	_, refusal = q.r.world.Table.Sync(claim, call, q.r.now)
	require.Nil(q.r.t, refusal)
}

// many is n refs at an epoch.
func many(n int, prefix string, epoch int) []string {
	refs := make([]string, n)
	for i := range refs {
		refs[i] = fmt.Sprintf("%s%d@%d", prefix, i, epoch)
	}
	return refs
}

// smallFeed makes lagging, paging and forgetting happen soon.
func (r *rig) smallFeed() {
	r.world.changes.limits = feedLimits{page: 400, burst: 600, backlog: 2000, bytes: 6000, events: 24}
}

func TestS5_SubscribeSendsASnapshotThenCreatedEndedChangedAndSynced(t *testing.T) {
	r := newRig(t)
	o, late, tool := r.module("owner"), r.module("late"), r.module("tool")
	o.sync(1, record("a", 1), record("b", 1))
	u := newReader(tool)
	u.subscribe(nil)
	u.read()
	require.Equal(t, map[string]uint64{"owner/a": 1, "owner/b": 1}, u.live)
	require.Equal(t, map[string]bool{"owner": true}, u.synced)
	u.heard = nil
	o.sync(2, record("a", 2), record("b", 1, directCarrier))
	u.read()
	late.sync(1, record("x", 7))
	u.read()
	require.Equal(t, []string{"ended owner/a@1", "created owner/a@2", "changed owner/b@1", "synced late/@0"}, u.heard)
	u.knows(t)
}

// Before an owner's synced a missing scope is held: the snapshot names who has
// synced, and synced brings the whole set.
func TestS5_AnOwnerThatHasNotSyncedIsNotAmongTheSynced(t *testing.T) {
	r := newRig(t)
	r.module("owner")
	tool := r.module("tool")
	u := newReader(tool)
	u.subscribe(nil)
	u.read()
	require.Equal(t, []string{"snapshot /@0"}, u.heard)
	require.Empty(t, u.synced)
	r.quick("owner").sync()
	u.read()
	require.Equal(t, []string{"snapshot /@0", "synced owner/@0"}, u.heard, "an empty first set is told too")
	u.knows(t)
}

func TestS5_SubscribeResumesFromASnapshotAfterATooOldCursor(t *testing.T) {
	r := newRig(t)
	r.smallFeed()
	o, tool := r.quick("owner"), r.module("tool")
	o.sync("a@1")
	u := newReader(tool)
	u.subscribe(nil)
	u.readAll()
	first := u.last
	u.cancel()
	for i := range 24 {
		o.sync(fmt.Sprintf("a@%d", 2+i))
		r.world.render()
	}
	oldest := r.world.changes.list[0].seq
	u.subscribe(doc{"since": first})
	refused := r.one(tool.toPeer())
	require.Equal(t, wire.CodeCursorTooOld, r.code(refused))
	require.Equal(t, doc{"oldest_retained_cursor": doc{"daemon_incarnation": first.Incarnation, "seq": float64(oldest)}},
		body(t, refused)["detail"], "of the oldest event that is kept, as the spawn feed has it")
	u.loose, u.last = true, nil
	u.subscribe(doc{"since": cursor{first.Incarnation, oldest - 1}})
	u.readAll()
	require.Empty(t, u.ended, "the event behind the cursor is the oldest that is kept")
	u.subscribe(doc{"since": cursor{first.Incarnation, oldest - 2}})
	u.readAll()
	require.Equal(t, wire.CodeCursorTooOld, u.ended)
	u.subscribe(nil)
	u.readAll()
	u.knows(t)
}

func TestS5_ACursorOfAnotherIncarnationIsRefused(t *testing.T) {
	r := newRig(t)
	tool := r.module("tool")
	u := newReader(tool)
	u.subscribe(doc{"since": cursor{"another", 1}})
	refused := r.one(tool.toPeer())
	require.Equal(t, wire.CodeCursorIncarnation, r.code(refused))
	require.Equal(t, doc{"current_daemon_incarnation": r.world.Incarnation}, body(t, refused)["detail"])
	require.Empty(t, tool.s.subs)
}

// A cursor ahead of the newest is accepted and silent, as the spawn feed's is.
func TestS5_ACursorAheadOfTheNewestIsSilent(t *testing.T) {
	r := newRig(t)
	o, tool := r.quick("owner"), r.module("tool")
	o.sync("a@1")
	u := newReader(tool)
	u.subscribe(doc{"since": cursor{r.world.Incarnation, 2}})
	o.sync("a@1", "b@1")
	u.readAll()
	require.Empty(t, u.heard)
	u.live["owner/b"] = 1
	o.sync("a@1")
	u.readAll()
	require.Equal(t, []string{"ended owner/b@1"}, u.heard)
}

func TestS5_SubscribeIsForRegisteredModules(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.fromPeer(frame(wire.Request, 1, doc{"op": wire.OpScopeSubscribe}))
	require.Equal(t, "not_registered", r.code(r.one(c.toPeer())))
}

func TestS5_AHeldSubscriptionEndsWithCancelGoodbyeAndClose(t *testing.T) {
	r := newRig(t)
	o := r.quick("owner")
	o.sync("a@1")
	for name, ends := range map[string]func(u *reader){
		"Cancel": func(u *reader) {
			u.e.fromPeer(wire.Header{Type: wire.Cancel, Corr: u.corr}.Append(nil))
			f := r.one(u.e.toPeer())
			require.Equal(t, wire.StreamEnd, f.Type)
			require.Equal(t, u.corr, f.Corr)
		},
		"Goodbye": func(u *reader) { u.e.fromPeer(wire.AppendGoodbye(nil, wire.ControlChannel, 0)) },
		"close":   func(u *reader) { u.e.s.End("closed") },
	} {
		u := newReader(r.module("tool-" + name))
		u.subscribe(nil)
		u.read()
		require.Len(t, u.heard, 1, name)
		ends(u)
		require.Empty(t, u.e.s.subs, name)
		require.NotContains(t, r.world.changes.subs, u.e.s.id, name)
		o.generation++
		o.sync(fmt.Sprintf("b@%d", o.generation))
		u.read()
		require.Len(t, u.heard, 1, name)
	}
}

// An Error ends whatever has its corr, so a refused second subscription of one
// corr ends the first.
func TestS5_OneCorrNamesOneSubscription(t *testing.T) {
	r := newRig(t)
	u := newReader(r.module("tool"))
	u.subscribe(nil)
	u.read()
	u.e.fromPeer(frame(wire.Request, u.corr, doc{"op": wire.OpScopeSubscribe}))
	u.read()
	require.Equal(t, wire.CodeInvalidRequest, u.ended)
	require.Empty(t, u.e.s.subs)
	for range maxSubscriptions {
		u.subscribe(nil)
	}
	u.readAll()
	require.Empty(t, u.ended)
	u.subscribe(nil)
	u.read()
	require.Equal(t, wire.CodeInvalidRequest, u.ended)
	require.Len(t, u.e.s.subs, maxSubscriptions)
}

func TestS5_ASubscriptionIsBounded(t *testing.T) {
	r := newRig(t)
	u := newReader(r.module("tool"))
	owners := make([]doc, maxOwners+1)
	for i := range owners {
		owners[i] = doc{"kind": "reserved", "module_id": fmt.Sprint("m", i)}
	}
	u.subscribe(doc{"owners": owners})
	u.read()
	require.Equal(t, wire.CodeInvalidControlBody, u.ended)
	u.subscribe(doc{"owners": owners[1:]})
	u.read()
	require.Empty(t, u.ended)
}

func TestS5_SubscriberThatDoesNotReadIsCutAtItsBacklog(t *testing.T) {
	r := newRig(t)
	o, tool := r.quick("owner"), r.module("tool")
	o.sync("a@1")
	u := newReader(tool)
	u.subscribe(nil)
	u.readAll()
	seen := u.last.Seq
	tool.s.Unsent(1) // its socket takes nothing
	i := 1
	for ; u.ended == "" && i < 100; i++ {
		o.sync(many(200, "r", i)...)
		u.read()
	}
	require.Equal(t, wire.CodeSubscriberLagged, u.ended)
	require.Empty(t, tool.s.subs)
	require.Equal(t, seen, u.last.Seq, "nothing is written to one that takes nothing")
	kept := 0
	for _, e := range r.world.changes.list {
		if e.seq > seen {
			kept += e.bytes
		}
	}
	require.Greater(t, kept, 1<<20, "at 1 MiB of backlog")
	require.Less(t, kept, 1<<20+100<<10, "and not much later")
	u.again()
	u.readAll()
	require.Empty(t, u.ended, "it resumes where it was")
	u.knows(t)
}

func TestS5_ASubscriptionOfAConnectionThatTakesNothingWaits(t *testing.T) {
	r := newRig(t)
	u := newReader(r.module("tool"))
	u.e.s.Unsent(1)
	u.subscribe(nil)
	u.read()
	require.Empty(t, u.heard)
	u.room()
	u.read()
	require.Len(t, u.heard, 1)
}

// The error names the first event that was not delivered: of a set, the event it
// is, whatever pages were sent.
func TestS5_ALaggedSubscriberIsToldItsFirstUndeliveredCursor(t *testing.T) {
	r := newRig(t)
	r.smallFeed()
	o, tool := r.quick("owner"), r.module("tool")
	first := func() uint64 {
		var e struct {
			Detail struct {
				Cursor cursor `json:"first_undelivered_cursor"`
			} `json:"detail"`
		}
		frames := tool.toPeer()
		f := frames[len(frames)-1]
		require.Equal(t, wire.CodeSubscriberLagged, r.code(f))
		require.NoError(t, json.Unmarshal(f.Body, &e))
		return e.Detail.Cursor.Seq
	}
	u := newReader(tool)
	u.subscribe(nil)
	u.readAll()
	o.sync(many(20, "r", 1)...) // seq 1, in pages
	u.read()
	require.NotNil(t, u.pending)
	tool.s.Unsent(1)
	o.sync(many(20, "r", 2)...)
	r.world.render()
	require.Equal(t, uint64(1), first(), "inside a set")
	require.Zero(t, u.last.Seq)

	u.room()
	u.subscribe(nil) // seq 41
	u.read()
	require.NotNil(t, u.pending)
	tool.s.Unsent(1)
	o.sync(many(20, "r", 3)...)
	r.world.render()
	require.Equal(t, uint64(41), first(), "inside a snapshot: there is no cursor to resume from")
}

func TestS5_SubscriberOfOneOwnerHearsOfNoOther(t *testing.T) {
	r := newRig(t)
	r.smallFeed()
	r.world.changes.limits.events, r.world.changes.limits.bytes = 1000, 1<<20
	o, other, tool := r.quick("owner"), r.quick("other"), r.module("tool")
	o.sync(many(20, "a", 1)...)
	other.sync("b@1")
	u := newReader(tool)
	u.subscribe(doc{"owners": []doc{{"kind": "reserved", "module_id": "other"}}})
	u.read()
	require.Equal(t, map[string]uint64{"other/b": 1}, u.live, "in one page")
	require.Equal(t, map[string]bool{"other": true}, u.synced)
	o.sync(many(20, "a", 2)...)
	other.sync("b@2")
	u.readAll()
	require.Equal(t, map[string]uint64{"other/b": 2}, u.live)
}

// What others do is no backlog of a subscriber that did not ask for it.
func TestS5_TheBacklogIsOfTheOwnersThatWereAskedFor(t *testing.T) {
	r := newRig(t)
	r.world.changes.limits = feedLimits{page: 600, burst: 900, backlog: 2000, bytes: 1 << 20, events: 1000}
	o, other, tool := r.quick("owner"), r.quick("other"), r.module("tool")
	o.sync()
	other.sync("b@1")
	u := newReader(tool)
	u.subscribe(doc{"owners": []doc{{"kind": "reserved", "module_id": "other"}}})
	u.readAll()
	tool.s.Unsent(1)
	other.sync("b@2")
	o.sync(many(100, "a", 1)...)
	other.sync("b@3")
	u.read()
	require.Empty(t, u.ended)
	for i := range 20 {
		other.sync(fmt.Sprintf("b@%d", 4+i))
	}
	u.read()
	require.Equal(t, wire.CodeSubscriberLagged, u.ended)
}

// Injected frames wait for the end of a router's frame under way; the feed that
// waits with them is one burst, however long that takes.
func TestS5_AFrameUnderWayHoldsTheFeedBack(t *testing.T) {
	r := newRig(t)
	r.smallFeed()
	r.world.changes.limits.events, r.world.changes.limits.bytes = 1000, 1<<20
	r.world.changes.limits.backlog = 8000
	o, tool := r.quick("owner"), r.module("tool")
	u := newReader(tool)
	u.subscribe(nil)
	u.readAll()
	whole := data(wire.Push, 3, 1, "half and half")
	tool.fromRouter(whole[:25])
	tool.written[toPeer].Reset()
	o.sync(many(20, "a", 1)...)
	for range 10 {
		r.world.render()
		r.run()
		require.False(t, tool.s.Unsent(0), "nothing to go on with before the frame ends")
	}
	waiting := len(tool.s.outs[toPeer].later)
	require.NotZero(t, waiting)
	require.Less(t, waiting, 2000)
	o.sync(many(60, "b", 1)...)
	r.world.render()
	r.run()
	require.Empty(t, tool.s.subs, "it is cut at its backlog")
	tool.fromRouter(whole[25:])
	rest := append(whole[:25:25], tool.written[toPeer].Bytes()...)
	tool.written[toPeer].Reset()
	tool.written[toPeer].Write(rest)
	frames := tool.toPeer()
	require.Equal(t, "half and half", string(frames[0].Body))
	u.take(frames[1:])
	require.Equal(t, wire.CodeSubscriberLagged, u.ended)
	u.again()
	u.readAll()
	u.knows(t)
}

// Proofs and their hashes never appear (section 4).
func TestS5_NeitherProofNorHashIsInTheFeed(t *testing.T) {
	r := newRig(t)
	o, tool := r.module("owner"), r.module("tool")
	hash := strings.Repeat("ab", 32)
	secret := func(epoch int) doc {
		d := record("s", epoch, directCarrier)
		d["bind_proof_sha256"] = hash
		return d
	}
	u := newReader(tool)
	var all []byte
	see := func() {
		r.world.render()
		for _, f := range tool.toPeer() {
			all = append(all, f.Body...)
		}
	}
	u.subscribe(nil)
	o.sync(1, secret(1))
	see()
	o.sync(2, secret(2))
	see()
	o.sync(3, func() doc { d := secret(2); delete(d, "carriers"); return d }())
	see()
	u.subscribe(nil)
	see()
	for _, kind := range []string{"snapshot", "synced", "ended", "created", "changed"} {
		require.Contains(t, string(all), `"kind":"`+kind+`"`)
	}
	require.NotContains(t, string(all), hash)
	require.NotContains(t, string(all), "proof")
}

// Subscribers share a snapshot while nothing happens. Those that read old ones
// slowly are cut when too many are kept for them.
func TestS5_SnapshotsUnderWayAreBounded(t *testing.T) {
	r := newRig(t)
	r.smallFeed()
	r.world.changes.limits.scopes = 100
	r.world.changes.limits.events, r.world.changes.limits.bytes = 1000, 1<<20
	r.world.changes.limits.backlog = 1 << 20
	o := r.quick("owner")
	o.sync(many(40, "a", 1)...)
	var slow []*reader
	join := func() *reader {
		u := newReader(r.module(fmt.Sprint("tool", len(slow))))
		slow = append(slow, u)
		u.subscribe(nil)
		u.read()
		require.NotNil(t, u.pending)
		u.e.s.Unsent(1)
		return u
	}
	first, second := join(), join()
	require.Len(t, r.world.changes.sending, 1, "shared")
	o.sync(many(41, "a", 1)...)
	join()
	require.Len(t, r.world.changes.sending, 2)
	first.read()
	require.Empty(t, first.ended)
	o.sync(many(42, "a", 1)...)
	join()
	for _, u := range []*reader{first, second} {
		u.read()
		require.Equal(t, wire.CodeSubscriberLagged, u.ended)
		require.Nil(t, u.last, "inside a set there is nothing to resume from")
	}
	require.Len(t, r.world.changes.sending, 2)
	for _, u := range slow[2:] {
		u.readAll()
		u.knows(t)
	}
	require.Empty(t, r.world.changes.sending, "nothing is kept for nobody")
}

// A table whose ring ran past the renderer leaves subscribers with a gap: they
// are cut, and nobody may resume from before it.
func TestS5_WhatWasNeverRenderedCutsItsSubscribers(t *testing.T) {
	r := newRig(t)
	r.world.Table = table.New(table.Config{Incarnation: r.world.Incarnation, Limits: table.Limits{Events: 8}})
	o, tool := r.quick("owner"), r.module("tool")
	u := newReader(tool)
	u.subscribe(nil)
	u.readAll()
	o.sync("a@1")
	u.readAll()
	o.sync(many(20, "b", 1)...)
	u.read()
	require.Equal(t, wire.CodeSubscriberLagged, u.ended)
	u.again()
	u.read()
	require.Equal(t, wire.CodeCursorTooOld, u.ended)
	u.subscribe(nil)
	u.readAll()
	u.knows(t)
}

// A subscriber that joins, lags, resumes and reconnects at random ends with the
// table's live set. The number of steps is SCOPEWARD_FEED_STEPS.
func TestS5_SubscriberEndsWithTheTablesLiveSet(t *testing.T) {
	steps, _ := strconv.Atoi(os.Getenv("SCOPEWARD_FEED_STEPS"))
	steps = max(steps, 2000)
	done, codes := 0, map[string]int{}
	for done < steps {
		rapid.Check(t, func(rt *rapid.T) {
			r := newRig(t)
			r.smallFeed()
			owners := []*quick{r.quick("a"), r.quick("bb")}
			u := newReader(r.module("tool"))
			u.codes = codes
			u.subscribe(nil)
			epochs, blocked := map[string]int{}, false
			rt.Repeat(map[string]func(*rapid.T){
				"sync": func(rt *rapid.T) {
					o := rapid.IntRange(0, 1).Draw(rt, "owner")
					n := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 12}).Draw(rt, "n")
					var refs []string
					for i := range n {
						key := fmt.Sprint(o, i)
						if epochs[key] == 0 || owners[o].generation > 0 && rapid.Bool().Draw(rt, "up") {
							epochs[key]++
						}
						refs = append(refs, fmt.Sprintf("r%d@%d", i, epochs[key]))
					}
					for i := n; i < 12; i++ { // an epoch that ended does not come back
						if key := fmt.Sprint(o, i); epochs[key] > 0 {
							epochs[key]++
						}
					}
					owners[o].sync(refs...)
				},
				"render": func(*rapid.T) { r.world.render(); r.run() },
				"read": func(*rapid.T) {
					blocked = false
					u.room()
					u.read()
				},
				"go on": func(*rapid.T) {
					if !blocked {
						u.room()
					}
				},
				"block": func(*rapid.T) { blocked = true; u.e.s.Unsent(1) },
				"resume": func(*rapid.T) {
					if u.ended == "" {
						u.cancel()
					}
					u.again()
				},
				"snapshot": func(*rapid.T) {
					if u.ended == "" {
						u.cancel()
					}
					u.subscribe(nil)
				},
				"reconnect": func(rt *rapid.T) {
					u.e.s.End("closed")
					old := u
					u = newReader(r.module("tool"))
					u.codes, blocked = codes, false
					if rapid.Bool().Draw(rt, "remembers") && old.last != nil {
						u.live, u.synced, u.last = old.live, old.synced, old.last
					}
					u.again()
				},
				"": func(*rapid.T) { done++ },
			})
			u.readAll()
			for u.ended != "" {
				if u.ended == wire.CodeCursorTooOld {
					u.last = nil
				}
				u.again()
				u.readAll()
			}
			require.Nil(rt, u.pending)
			u.knows(rt)
			require.False(rt, slices.ContainsFunc(u.e.s.subs, func(s *subscription) bool { return s.page != 0 || s.starting() }))
		})
	}
	if done >= 20_000 { // there are about two of each in a thousand steps
		require.NotZero(t, codes[wire.CodeSubscriberLagged], "some lag")
		require.NotZero(t, codes[wire.CodeCursorTooOld], "some come back too late")
	}
	t.Logf("%d steps, %v", done, codes)
}

// A peer that reads slowly still has its requests read, and answered between
// bursts of the feed.
func TestS5_ASlowSubscriberIsAnsweredItsOwnRequests(t *testing.T) {
	f := newFront(t)
	w := f.server.World()
	records := []byte(`{"op":"scope.sync","generation":1,"scopes":[`)
	for i := range 10_000 {
		if i > 0 {
			records = append(records, ',')
		}
		records = fmt.Appendf(records, `{"ref":"s%d","scope_epoch":1,"kind":"head","attributes":{"agent_id":"%01500d"}}`, i, i)
	}
	call, refusal := table.DecodeSync(append(records, "]}"...))
	require.Nil(t, refusal)
	peer := table.Peer{Conn: 1 << 40, Registration: 1}
	w.Table.Join(peer)
	_, refusal = w.Table.Sync(table.Claim{Peer: peer, Owner: "owner", Launch: 1, Current: true}, call, w.now())
	require.Nil(t, refusal)

	m := f.wireModule("tool")
	require.NoError(t, m.c.(*net.TCPConn).SetReadBuffer(32<<10))
	send := func(corr uint64, d doc) {
		_, err := m.c.Write(frame(wire.Request, corr, d))
		require.NoError(t, err)
	}
	send(2, doc{"op": wire.OpScopeSubscribe})
	f.until(func(s *Session) bool { return s.blocked() })
	send(3, doc{"op": wire.OpScopeDescribe, "owner": doc{"kind": "reserved", "module_id": "owner"}, "ref": "s1"})
	send(4, doc{"op": wire.OpCatalogUpdate, "provides": []any{}})
	answered := map[uint64]bool{}
	for more := true; more; {
		fr := m.read(t)
		if fr.Corr != 2 {
			require.Equal(t, wire.Response, fr.Type, "%s", fr.Body)
			answered[fr.Corr] = true
			continue
		}
		var d feedFrame
		require.NoError(t, json.Unmarshal(fr.Body, &d))
		more = d.More
	}
	require.Equal(t, map[uint64]bool{3: true, 4: true}, answered, "before the snapshot's end")
}
