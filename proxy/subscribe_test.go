package proxy

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/proxy/wire"
)

// reader is a subscriber as the contract's section 5 has it: it holds what the
// feed tells and nothing else.
type reader struct {
	e       *end
	corr    uint64
	live    map[string]float64 // "owner/ref" to epoch
	synced  map[string]bool
	pending map[string]float64 // pages of a set that is not whole yet
	last    doc                // cursor
	ended   string             // code of a terminal error
}

func newReader(e *end) *reader {
	return &reader{e: e, live: map[string]float64{}, synced: map[string]bool{}}
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

func scopeKey(owner any, ref any) string {
	return fmt.Sprintf("%v/%v", owner.(map[string]any)["module_id"], ref)
}

// read takes what has come.
func (r *reader) read() {
	r.e.r.world.render()
	for _, f := range r.e.toPeer() {
		if f.Corr != r.corr {
			continue
		}
		d := doc{}
		if err := json.Unmarshal(f.Body, &d); err != nil {
			continue
		}
		if f.Type == wire.Error {
			r.ended = d["code"].(string)
			continue
		}
		require.Equal(r.e.r.t, wire.StreamData, f.Type)
		require.Zero(r.e.r.t, f.Flags)
		r.take(d)
	}
}

func (r *reader) take(d doc) {
	switch d["kind"] {
	case "snapshot", "synced":
		if r.pending == nil {
			r.pending = map[string]float64{}
		}
		for _, o := range list(d["owners_synced"]) {
			r.synced[o.(map[string]any)["module_id"].(string)] = true
		}
		for _, s := range list(d["scopes"]) {
			s := s.(map[string]any)
			r.pending[scopeKey(s["owner"], s["ref"])] = s["scope_epoch"].(float64)
		}
		if d["more"] == true {
			return // the cursor counts when the set is whole
		}
		if d["kind"] == "snapshot" {
			r.live = r.pending
		} else {
			owner := d["owner"].(map[string]any)["module_id"].(string)
			r.synced[owner] = true
			for k := range r.live {
				if k[:len(owner)+1] == owner+"/" {
					delete(r.live, k)
				}
			}
			for k, v := range r.pending {
				r.live[k] = v
			}
		}
		r.pending = nil
	case "created", "changed":
		r.live[scopeKey(d["owner"], d["ref"])] = d["scope_epoch"].(float64)
	case "ended":
		delete(r.live, scopeKey(d["owner"], d["ref"]))
	}
	r.last = d["cursor"].(map[string]any)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// truth is the table's live set.
func (r *rig) truth() map[string]float64 {
	live := map[string]float64{}
	for _, s := range r.world.Table.Snapshot().Scopes {
		live[s.ID.Owner.ModuleID+"/"+s.ID.Ref] = float64(s.ID.Epoch)
	}
	return live
}

func TestS5_SubscribeSendsASnapshotThenCreatedEndedChangedAndSynced(t *testing.T) {
	r := newRig(t)
	o, late, tool := r.module("owner"), r.module("late"), r.module("tool")
	o.sync(1, record("a", 1), record("b", 1))
	u := newReader(tool)
	u.subscribe(nil)
	u.read()
	require.Equal(t, map[string]float64{"owner/a": 1, "owner/b": 1}, u.live)
	require.Equal(t, map[string]bool{"owner": true}, u.synced)

	var kinds []string
	see := func() {
		r.world.render()
		for _, f := range tool.toPeer() {
			d := body(t, f)
			kinds = append(kinds, fmt.Sprintf("%v %v@%v", d["kind"], d["ref"], d["scope_epoch"]))
			u.take(d)
		}
	}
	o.sync(2, record("a", 2), record("b", 1, directCarrier))
	see()
	late.sync(1, record("x", 7))
	see()
	require.Equal(t, []string{"ended a@1", "created a@2", "changed b@1", "synced <nil>@<nil>"}, kinds)
	require.Equal(t, r.truth(), u.live)
	require.True(t, u.synced["late"])
}

func TestS5_SubscribeResumesAfterATooOldCursorFromASnapshot(t *testing.T) {
	r := newRig(t)
	o, tool := r.module("owner"), r.module("tool")
	o.sync(1, record("a", 1))
	u := newReader(tool)
	u.subscribe(nil)
	u.read()
	first := u.last
	tool.fromPeer(wire.Header{Type: wire.Cancel, Corr: u.corr}.Append(nil))
	require.Equal(t, wire.StreamEnd, r.one(tool.toPeer()).Type)

	for i := range maxRetained + 2 {
		o.sync(2+i, record("a", 2+i))
		r.world.render()
	}
	u.subscribe(doc{"since": first})
	refused := r.one(tool.toPeer())
	require.Equal(t, codeCursorTooOld, r.code(refused))
	oldest := body(t, refused)["detail"].(map[string]any)["oldest_retained_cursor"]
	u.subscribe(doc{"since": oldest})
	u.read()
	require.Empty(t, u.ended, "the oldest retained cursor is one to resume from")
	u.subscribe(doc{"since": doc{"daemon_incarnation": "another", "seq": 1}})
	u.read()
	require.Equal(t, codeCursorIncarnation, u.ended)
	u.subscribe(nil)
	u.read()
	require.Equal(t, r.truth(), u.live)
}

func TestS5_SubscribeIsForRegisteredModules(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.fromPeer(frame(wire.Request, 1, doc{"op": wire.OpScopeSubscribe}))
	require.Equal(t, "not_registered", r.code(r.one(c.toPeer())))
}

func TestS5_SubscriberThatDoesNotReadIsCutAtItsBacklog(t *testing.T) {
	r := newRig(t)
	o, tool := r.module("owner"), r.module("tool")
	o.sync(1)
	u := newReader(tool)
	u.subscribe(nil)
	u.read()
	tool.s.Unsent(1) // its socket takes nothing
	for i := 0; u.ended == "" && i < 20; i++ {
		scopes := make([]doc, 1000)
		for j := range scopes {
			scopes[j] = record(fmt.Sprintf("r%d-%d", i, j), 1)
		}
		o.sync(2+i, scopes...)
		u.read()
	}
	require.Equal(t, codeSubscriberLagged, u.ended)
	require.Empty(t, tool.s.subs)
}

func TestS5_SubscriberOfOneOwnerHearsOfNoOther(t *testing.T) {
	r := newRig(t)
	o, other, tool := r.module("owner"), r.module("other"), r.module("tool")
	o.sync(1, record("a", 1))
	other.sync(1, record("b", 1))
	u := newReader(tool)
	u.subscribe(doc{"owners": []doc{{"kind": "reserved", "module_id": "other"}}})
	u.read()
	o.sync(2, record("a", 2))
	other.sync(2, record("b", 2))
	u.read()
	require.Equal(t, map[string]float64{"other/b": 2}, u.live)
}

// A subscriber that joins, lags, resumes and reconnects at random ends with the
// table's live set. The number of steps is SCOPEWARD_FEED_STEPS.
func TestS5_SubscriberEndsWithTheTablesLiveSet(t *testing.T) {
	steps, _ := strconv.Atoi(os.Getenv("SCOPEWARD_FEED_STEPS"))
	steps = max(steps, 300)
	done := 0
	for done < steps {
		rapid.Check(t, func(rt *rapid.T) {
			r := newRig(t)
			owners := []*end{r.module("a"), r.module("b")}
			generation := 0
			tool := r.module("tool")
			u := newReader(tool)
			u.subscribe(nil)
			epochs := map[string]int{}
			rt.Repeat(map[string]func(*rapid.T){
				"sync": func(rt *rapid.T) {
					generation++
					o := rapid.IntRange(0, 1).Draw(rt, "owner")
					var scopes []doc
					for i := range rapid.IntRange(0, 4).Draw(rt, "n") {
						key := fmt.Sprint(o, i)
						epochs[key] = max(epochs[key]+rapid.IntRange(0, 1).Draw(rt, "up"), generation/8+1)
						scopes = append(scopes, record(fmt.Sprint("r", i), epochs[key]))
					}
					owners[o].sync(generation, scopes...)
				},
				"big": func(rt *rapid.T) {
					generation++
					scopes := make([]doc, 150)
					for i := range scopes {
						scopes[i] = record(fmt.Sprint("big", i), generation)
					}
					owners[0].sync(generation, scopes...)
				},
				"read":  func(*rapid.T) { tool.s.Unsent(0); u.read() },
				"block": func(*rapid.T) { tool.s.Unsent(1) },
				"resume": func(*rapid.T) {
					tool.s.Unsent(0)
					u.read()
					if u.last == nil {
						return
					}
					tool.fromPeer(wire.Header{Type: wire.Cancel, Corr: u.corr}.Append(nil))
					u.read()
					u.subscribe(doc{"since": u.last})
				},
				"reconnect": func(*rapid.T) {
					tool.s.End("closed")
					tool = r.module("tool")
					u = newReader(tool)
					u.subscribe(nil)
				},
				"": func(rt *rapid.T) { done++ },
			})
			tool.s.Unsent(0)
			u.read()
			for u.ended != "" || u.pending != nil || tool.s.behind {
				if u.ended != "" {
					u.subscribe(nil)
				}
				tool.s.Handle(feedEvent{})
				u.read()
			}
			require.Equal(rt, r.truth(), u.live)
		})
	}
}
