package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/table/model"
)

// A story plays random steps on the wire and in the table's naive model, and
// compares each answer and each drain.
type story struct {
	*stage
	*rand.Rand
	model  *model.Model
	owners map[string]*module
	tool   *module
	c      *client
	gen    map[string]uint64
	routes map[uint64]*route
	held   []inFlight
	next   uint64
	told   map[string]int // what commits came to
}

// The model's peers: the client, then the modules.
const (
	opener = iota + 1
	provider
	firstOwner
)

func tell(t *testing.T, seed uint64, steps int) {
	y := &story{stage: play(t), Rand: rand.New(rand.NewPCG(seed, 11)), model: model.New(model.Limits{LiveScopes: 10_000, Tombstones: 1_000}, "owner"), owners: map[string]*module{},
		gen: map[string]uint64{}, routes: map[uint64]*route{}, told: map[string]int{}}
	y.c = y.client()
	y.tool = y.holding("tool")
	y.model.Join(opener)
	y.model.Join(provider)
	for i, id := range []string{"owner", "other"} {
		y.owners[id] = y.module(id)
		y.model.Join(firstOwner + i)
	}
	for range steps {
		switch y.IntN(12) {
		case 0:
			y.change(true)
		case 1, 2, 3:
			y.change(false)
		case 4, 5, 6, 7, 8:
			y.open()
		case 9:
			y.settle()
		case 10:
			y.part()
		case 11:
			y.describe()
		}
	}
	require.Len(t, y.told, 3, "a story in which binds commit, and are stale in both ways: %v", y.told)
}

func (y *story) pick(from ...string) string { return from[y.IntN(len(from))] }

// epoch is the live one of a ref, mostly, or one beside it.
func (y *story) epoch(id, ref string) uint64 {
	epoch := uint64(1)
	if f := strings.Fields(y.model.Describe(id, ref)); f[0] != "not_live" {
		fmt.Sscan(f[1], &epoch)
		if f[0] == "ended" {
			epoch++
		}
	}
	switch y.IntN(10) {
	case 0:
		epoch++
	case 1:
		epoch--
	}
	return epoch
}

// record is one that both readings understand.
func (y *story) record(id string) model.Record {
	ref := y.pick("a", "b", "c")
	r := model.Record{Ref: ref, Epoch: y.epoch(id, ref), Kind: "head", Attributes: map[string]string{}}
	if ref == "c" {
		r.Kind = y.pick("worker", "worker", "worker", "ephemeral")
	}
	for _, who := range []string{"direct", "reserved:other"} {
		switch y.IntN(3) {
		case 0:
			r.Carriers = append(r.Carriers, model.Carrier{Principal: who})
		case 1:
			r.Carriers = append(r.Carriers, model.Carrier{Principal: who, Targeted: true, Targets: []string{y.pick("tool", "util")}})
		}
	}
	if y.IntN(3) == 0 {
		r.ChildOwners = []string{"reserved:" + y.pick("owner", "other")}
	}
	if y.IntN(4) == 0 {
		r.Parent = &model.Parent{Owner: "reserved:" + y.pick("owner", "other"), Ref: y.pick("a", "b", "c"), Epoch: 1 + y.Uint64N(2)}
	}
	if id == "owner" || y.IntN(12) == 0 {
		if y.IntN(2) == 0 {
			r.Attributes["agent_id"] = y.pick("x", "y")
		}
		if y.IntN(4) == 0 {
			r.Attributes["delegates"] = "true"
		}
	}
	r.OnlyIfIdle = y.IntN(4) == 0
	return r
}

func onTheWire(r model.Record) doc {
	members := []member{kind(r.Kind)}
	var list []any
	for _, c := range r.Carriers {
		name := strings.TrimPrefix(c.Principal, "reserved:")
		if !c.Targeted {
			list = append(list, name)
		} else {
			list = append(list, to(name, c.Targets...))
		}
	}
	if list != nil {
		members = append(members, carriers(list...))
	}
	if r.ChildOwners != nil {
		members = append(members, children(strings.TrimPrefix(r.ChildOwners[0], "reserved:")))
	}
	if p := r.Parent; p != nil {
		members = append(members, parent(strings.TrimPrefix(p.Owner, "reserved:"), p.Ref, p.Epoch))
	}
	for name, v := range r.Attributes {
		if name == "delegates" {
			members = append(members, delegates)
		} else {
			members = append(members, attribute(name, v))
		}
	}
	if r.OnlyIfIdle {
		members = append(members, idle)
	}
	return rec(r.Ref, r.Epoch, members...)
}

func (y *story) change(full bool) {
	y.t.Helper()
	id := y.pick("owner", "owner", "other")
	claim := model.Claim{Peer: firstOwner, Owner: id, Launch: 1, Current: true}
	if id == "other" {
		claim.Peer++
	}
	var records []model.Record
	var docs []any
	for range y.IntN(4) {
		r := y.record(id)
		records, docs = append(records, r), append(docs, onTheWire(r))
	}
	var ends []model.End
	if !full && y.IntN(3) == 0 {
		e := model.End{Ref: y.pick("a", "b", "c")}
		e.Epoch = y.epoch(id, e.Ref)
		ends, docs = append(ends, e), append(docs, end(e.Ref, e.Epoch))
	}
	generation := y.gen[id] + uint64(min(1, y.IntN(8)))
	var reply model.Reply
	var code string
	var got said
	now := int64(soon(0))
	if full {
		reply, code = y.model.Sync(claim, generation, records, now)
		var list []doc
		for _, d := range docs {
			list = append(list, d.(doc))
		}
		got = y.owners[id].sync(generation, list...)
	} else {
		reply, code = y.model.Apply(claim, generation, records, ends, now)
		got = y.owners[id].apply(generation, docs...)
	}
	if code == "" {
		y.gen[id] = generation
		code = modelSaid(records, ends, reply)
	}
	got.is(code)
	y.drains(reply.Drains)
}

// modelSaid is the model's reply as [said] has it.
func modelSaid(records []model.Record, ends []model.End, reply model.Reply) string {
	var results, ended, outcomes []string
	for i, r := range reply.Results {
		results = append(results, strings.TrimSpace(fmt.Sprintf("%s@%d %s %s", records[i].Ref, records[i].Epoch, r.Outcome, linkOf(r))))
	}
	slices.SortFunc(reply.Ended, func(a, b model.End) int { return cmp.Compare(a.Ref, b.Ref) })
	for _, e := range reply.Ended {
		ended = append(ended, fmt.Sprintf("%s@%d", e.Ref, e.Epoch))
	}
	for i, e := range ends {
		outcomes = append(outcomes, fmt.Sprintf("%s@%d %s", e.Ref, e.Epoch, map[bool]string{true: "ended", false: "not_live"}[reply.Ends[i]]))
	}
	var parts []string
	for _, p := range []struct {
		prefix string
		list   []string
	}{{"", results}, {"ended ", ended}, {"", outcomes}} {
		if len(p.list) > 0 {
			parts = append(parts, p.prefix+strings.Join(p.list, ", "))
		}
	}
	return strings.Join(parts, " | ")
}

func linkOf(r model.Result) string {
	if strings.HasPrefix(r.Outcome, "scope_") {
		return ""
	}
	return r.Link
}

// drains requires what the model says was drained, and that all else lives.
func (y *story) drains(list []model.Drain) {
	y.t.Helper()
	by := map[string][]*route{}
	for _, d := range list {
		by[d.Reason] = append(by[d.Reason], y.routes[d.Route])
		delete(y.routes, d.Route)
	}
	var groups []group
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		groups = append(groups, closed(reason, by[reason]...))
	}
	if len(groups) > 0 {
		y.c.drained(groups...)
	}
	y.c.Quiet()
}

// inFlight is an admitted open whose bind waits with the module.
type inFlight struct {
	id   uint64
	open *routertest.Opening
	bind *routertest.Bind
}

func (y *story) open() {
	y.t.Helper()
	o := model.Open{Owner: y.pick("owner", "owner", "other"), Ref: y.pick("a", "b", "c"),
		Opener: opener, Provider: provider, Module: "tool", Principal: "direct", Hold: y.IntN(4) == 0}
	o.Epoch = y.epoch(o.Owner, o.Ref)
	opts := []routertest.OpenOption{scope(o.Owner, o.Ref, o.Epoch, doc{"hold_presence": o.Hold})}
	if who := y.pick("direct", "direct", "owner", "other"); who != "direct" {
		o.Principal = "reserved:" + who
		opts = append(opts, y.as(who))
	}
	y.next++
	if !y.model.Reserve(y.next, o, int64(soon(0))) {
		y.c.refused(y.refusal(o), "tool", opts...)
		return
	}
	open := y.c.StartOpen("tool", opts...)
	y.held = append(y.held, inFlight{y.next, open, y.tool.NextBind()})
	if len(y.held) > 3 || y.IntN(2) > 0 {
		y.settle()
	}
}

// refusal is the code for an open that the model does not admit.
func (y *story) refusal(o model.Open) string {
	status := strings.Fields(y.model.Describe(o.Owner, o.Ref))
	switch {
	case slices.Contains(status, "synced=false"):
		return "scope_not_synced"
	case status[0] != "live":
		return "scope_not_live"
	case status[1] != fmt.Sprint(o.Epoch):
		return "scope_ended"
	}
	return "scope_not_carrier"
}

// settle lets the module accept one of the binds that it holds.
func (y *story) settle() {
	y.t.Helper()
	if len(y.held) == 0 {
		return
	}
	i := y.IntN(len(y.held))
	h := y.held[i]
	y.held = slices.Delete(y.held, i, i+1)
	h.bind.Ack()
	verdict := y.model.Commit(h.id)
	y.told[verdict]++
	if verdict != "committed" {
		h.open.Wait().Refused(verdict)
		h.bind.NextGoodbye()
		return
	}
	y.routes[h.id] = &route{h.open.Route(), h.bind, y.tool, y.c}
}

// part closes one route from the client's side.
func (y *story) part() {
	y.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(y.routes))[:min(1, len(y.routes))] {
		y.model.Release(id)
		y.routes[id].goodbye()
		delete(y.routes, id)
	}
}

func (y *story) describe() {
	y.t.Helper()
	id, ref := y.pick("owner", "other"), y.pick("a", "b", "c")
	got := y.tool.reads(id, ref).text
	switch want := strings.Fields(y.model.Describe(id, ref)); want[0] {
	case "live":
		require.Contains(y.t, got, fmt.Sprintf("live %s/%s@%s ", id, ref, want[1]))
	case "ended":
		require.Equal(y.t, "ended @"+want[1], got)
	default:
		require.Equal(y.t, "not_live"+map[bool]string{true: "", false: " unsynced"}[want[1] == "synced=true"], got)
	}
}

// fuzz_001
func TestS3_ARandomStoryGoesAsTheModelTellsIt(t *testing.T) { tell(t, 1, 800) }

// fuzz_002
func TestS4_ASecondRandomStoryGoesAsTheModelTellsIt(t *testing.T) { tell(t, 2, 800) }

// fuzz_003
func TestS5a_AThirdRandomStoryGoesAsTheModelTellsIt(t *testing.T) { tell(t, 3, 800) }
