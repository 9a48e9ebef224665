package model_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/table/model"
)

var wanted = flag.Int("steps", 3_000, "how many steps the table and the model take together, at least")

// A run of enough steps must have met everything, or it shows nothing.
const enough = 100_000

var everything = []string{
	"call ", "call invalid_control_body", "call scope_sync_not_authority", "call scope_sync_required", "call scope_sync_stale",
	"call scope_live_limit_exceeded", "call scope_attributes_too_large",
	"created", "replaced", "updated", "unchanged", "end true", "end false", "expired",
	"refused scope_epoch_regressed", "refused scope_epoch_in_use", "refused scope_attribute_not_permitted",
	"refused scope_carrier_targets_invalid", "refused scope_delegates_without_agent", "refused scope_run_id_without_agent",
	"refused scope_run_id_with_flow_id", "refused scope_parent_not_permitted", "refused for a cycle", "refused scope_kind_changed",
	"refused scope_epoch_ended", "refused scope_expired", "refused scope_expiry_immutable", "refused scope_expiry_too_far",
	"drain scope_ended", "drain scope_parent_ended", "drain scope_delegation_changed", "drain scope_carrier_removed",
	"commit committed", "commit gone", "commit scope_ended", "commit scope_changed", "open true", "open false",
	"link linked", "link pending", "link ended", "holders 8",
}

// TestTheTableAndTheModelAgree drives both with random commands. What a failed
// run prints last is the shortest list of commands found that tells them apart.
func TestTheTableAndTheModelAgree(t *testing.T) {
	steps := 0
	met := map[string]int{}
	for steps < *wanted && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			m := &machine{T: t, pair: newPair(t, rapid.Bool().Draw(t, "remembers"))}
			m.met = met
			actions := map[string]func(*rapid.T){}
			actions["crowd"] = func(t *rapid.T) {
				m.T, m.t = t, t
				for _, c := range m.crowd() {
					m.do(c)
					steps++
				}
			}
			for name, next := range map[string]func() command{
				// A name's suffix only makes its action come more often.
				"sync": m.sync, "apply": m.apply, "apply more": m.apply, "apply most": m.apply,
				"open": m.open, "open more": m.open, "open most": m.open, "open again": m.open,
				"commit": m.commit, "commit more": m.commit, "commit most": m.commit, "release": m.release,
				"leave": m.leave, "promote": m.promote, "clock": m.clock, "sweep": m.sweep,
			} {
				actions[name] = func(t *rapid.T) {
					m.T, m.t = t, t
					m.do(next())
					steps++
				}
			}
			t.Repeat(actions)
		})
	}
	t.Logf("%d steps", steps)
	for _, what := range slices.Sorted(maps.Keys(met)) {
		t.Logf("%8d  %s", met[what], what)
	}
	if steps >= enough {
		for _, what := range everything {
			require.NotZero(t, met[what], "%d steps, and never once: %s", steps, what)
		}
	}
}

// machine draws the commands of one run. It looks at the model, so that what it
// draws often meets what is there.
type machine struct {
	*rapid.T
	*pair
	generations map[string]uint64
}

var refs = []string{"a", "b", "c", "d", "e"}

func pick[E any](m *machine, what string, from ...E) E {
	return rapid.SampledFrom(from).Draw(m.T, what)
}

// one in n, and no when shrunk.
func (m *machine) oneIn(n int, what string) bool {
	return rapid.IntRange(0, n-1).Draw(m.T, what) == n-1
}

func (m *machine) caller(op string) command {
	if m.generations == nil {
		m.generations = map[string]uint64{}
	}
	c := command{op: op, owner: pick(m, "owner", owners...)}
	c.launch = m.current[c.owner]
	if m.oneIn(12, "other launch") {
		c.launch += pick(m, "launch", -1, 1)
	}
	c.peer = fmt.Sprintf("%s.%d", c.owner, c.launch)
	second := c.peer + ".second"
	if authority, held := m.model.Authority(c.owner); held && m.peers[second] == authority {
		c.peer, second = second, c.peer
	}
	if m.oneIn(15, "another connection") {
		c.peer = second
	}
	if authority, held := m.model.Authority(c.owner); op == "apply" && (!held || m.peers[c.peer] != authority) && !m.oneIn(4, "too early") {
		c.op = "sync"
	}
	c.generation = m.generations[c.owner] + 1
	if m.oneIn(12, "odd generation") {
		c.generation = uint64(rapid.IntRange(0, 3).Draw(m.T, "generation"))
	}
	m.generations[c.owner] = max(c.generation, m.generations[c.owner])
	return c
}

// sync sends most of what is live again, and some more.
func (m *machine) sync() command { return m.full(m.caller("sync")) }

func (m *machine) full(c command) command {
	for _, s := range m.model.Scopes(c.owner) {
		if !m.oneIn(10, "omit") {
			c.records = append(c.records, m.again(c.owner, s.Record))
		}
	}
	for range rapid.IntRange(0, 3).Draw(m.T, "new records") {
		c.records = append(c.records, m.fresh(c.owner))
	}
	return m.finish(c)
}

func (m *machine) apply() command {
	c := m.caller("apply")
	if c.op == "sync" {
		return m.full(c)
	}
	for range rapid.IntRange(0, 3).Draw(m.T, "upserts") {
		if live := m.model.Scopes(c.owner); len(live) > 0 && !m.oneIn(3, "new") {
			c.records = append(c.records, m.again(c.owner, pick(m, "live", live...).Record))
		} else {
			c.records = append(c.records, m.fresh(c.owner))
		}
	}
	if m.oneIn(3, "ends") {
		for range rapid.IntRange(1, 2).Draw(m.T, "ends") {
			ref := pick(m, "ref", refs...)
			c.ends = append(c.ends, model.End{Ref: ref, Epoch: m.epoch(c.owner, ref)})
		}
	}
	return m.finish(c)
}

// finish leaves a repeated ref in, or an empty one, only now and then: each of
// them refuses the whole call.
func (m *machine) finish(c command) command {
	if !m.oneIn(15, "repeat a ref") {
		seen := map[string]bool{}
		first := func(ref string) bool { was := seen[ref]; seen[ref] = true; return was }
		c.records = slices.DeleteFunc(c.records, func(r model.Record) bool { return first(r.Ref) })
		c.ends = slices.DeleteFunc(c.ends, func(e model.End) bool { return first(e.Ref) })
	}
	if len(c.records) > 0 && m.oneIn(40, "empty ref") {
		c.records[0].Ref = ""
	}
	if len(c.records) > 1 {
		c.records = rapid.Permutation(c.records).Draw(m.T, "order")
	}
	return c
}

// epoch is mostly the live one of a ref, or one beside it.
func (m *machine) epoch(owner, ref string) uint64 {
	epoch := uint64(1)
	var n uint64
	if _, err := fmt.Sscanf(m.model.Describe(owner, ref), "live %d", &n); err == nil {
		epoch = n
	} else if _, err := fmt.Sscanf(m.model.Describe(owner, ref), "ended %d", &n); err == nil {
		epoch = n + uint64(pick(m, "after the end", 1, 0))
	}
	if m.oneIn(6, "other epoch") {
		epoch += uint64(pick(m, "epochs ahead", 1, 2)) - uint64(pick(m, "epochs back", 0, 2))
	}
	return min(epoch, 1<<63)
}

func (m *machine) fresh(owner string) model.Record {
	r := model.Record{
		Ref: pick(m, "ref", append(refs, "f", "g")...), Kind: pick(m, "kind", "head", "head", "worker", "ephemeral"),
		Attributes: map[string]string{},
	}
	r.Epoch = m.epoch(owner, r.Ref)
	for range rapid.IntRange(0, 4).Draw(m.T, "fields") {
		m.change(owner, &r)
	}
	if m.oneIn(3, "deadline") {
		m.deadline(&r)
	}
	return r
}

// again is a live record sent once more: as it is with its sets in another
// order, with a change, or at a higher epoch.
func (m *machine) again(owner string, r model.Record) model.Record {
	attributes := map[string]string{}
	for k, v := range r.Attributes {
		attributes[k] = v
	}
	r.Attributes = attributes
	r.Carriers, r.ChildOwners = slices.Clone(r.Carriers), slices.Clone(r.ChildOwners)
	slices.Reverse(r.Carriers)
	slices.Reverse(r.ChildOwners)
	r.OnlyIfIdle = m.oneIn(4, "only if idle")
	for range pick(m, "changes", 0, 1, 1, 2) {
		m.change(owner, &r)
	}
	switch {
	case m.oneIn(6, "next epoch"):
		r.Epoch++
	case m.oneIn(20, "lower epoch") && r.Epoch > 0:
		r.Epoch--
	}
	switch {
	case r.Expires != nil && *r.Expires <= uint64(m.now) && m.oneIn(3, "passed, and as if it had none"):
		r.Expires = nil
	case m.oneIn(15, "other deadline"):
		m.deadline(&r)
	}
	if m.oneIn(20, "other kind") {
		r.Kind = pick(m, "kind", "head", "worker", "ephemeral")
	}
	return r
}

func (m *machine) deadline(r *model.Record) {
	r.Expires = nil
	after := pick[int64](m, "deadline", 100, 1_000, 1, 0, -1, 86_400_000, 86_400_001, -1-start)
	if at := uint64(m.now + after); !m.oneIn(10, "no deadline") {
		r.Expires = &at
	}
}

// change changes one field.
func (m *machine) change(owner string, r *model.Record) {
	principals := []string{"reserved:aft", "reserved:hist", "reserved:core", "direct", "unverified"}
	field := pick(m, "field", "carrier", "parent", "child", "attribute", "attribute", "proof")
	if owner != "core" && field == "attribute" && !m.oneIn(6, "not permitted") {
		field = "carrier"
	}
	switch field {
	case "carrier":
		r.Carriers = toggle(m, r.Carriers, model.Carrier{Principal: pick(m, "carrier", principals...)})
		if n := len(r.Carriers); n > 0 && m.oneIn(2, "targeted") {
			r.Carriers[n-1].Targeted = true
			r.Carriers[n-1].Targets = pick(m, "targets", modules, modules[:1], modules[1:], []string{"tool", "plexus", "tool"}, nil,
				modules, modules[:1], modules[1:],
				slices.Repeat(modules, 8), slices.Repeat([]string{"tool"}, 17))
		}
	case "child":
		r.ChildOwners = toggle(m, r.ChildOwners, pick(m, "child owner", principals...))
	case "parent":
		r.Parent = nil
		if !m.oneIn(5, "no parent") {
			p := model.Parent{Owner: pick(m, "parent's owner", owners...), Ref: pick(m, "parent", refs...)}
			p.Epoch = m.epoch(p.Owner, p.Ref)
			p.Owner = "reserved:" + p.Owner
			if m.oneIn(20, "odd parent") {
				p.Owner = "direct"
			}
			r.Parent = &p
		}
	case "proof":
		r.Proof = pick(m, "proof", "", strings.Repeat("ab", 32), strings.Repeat("cd", 32))
	case "attribute":
		m.attribute(r)
	}
}

func (m *machine) attribute(r *model.Record) {
	name := pick(m, "attribute", "agent_id", "agent_id", "delegates", "flow_id", "run_id")
	delete(r.Attributes, name)
	switch {
	case m.oneIn(3, "unset"):
	case name == "delegates":
		r.Attributes[name] = "true"
	case m.oneIn(15, "odd value"):
		r.Attributes[name] = pick(m, "value", strings.Repeat("x", 256), strings.Repeat("x", 257), "a b", "",
			strings.Repeat("x", 4096-len(`{"agent_id":""}`)), strings.Repeat("x", 4097-len(`{"agent_id":""}`)))
	default:
		r.Attributes[name] = pick(m, "value", "x", "y")
	}
}

// toggle takes an equal element out of a list, or puts e at its end.
func toggle[E any](m *machine, list []E, e E) []E {
	for i := range list {
		if fmt.Sprint(list[i]) == fmt.Sprint(e) || m.oneIn(4, "take out") {
			return slices.Delete(list, i, i+1)
		}
	}
	return append(list, e)
}

func (m *machine) open() command {
	o := model.Open{Owner: pick(m, "owner", owners...), Ref: pick(m, "ref", refs...)}
	o.Principal = "reserved:" + o.Owner
	if live := m.model.Scopes(o.Owner); len(live) > 0 {
		s := pick(m, "live", live...)
		o.Ref = s.Ref
		if len(s.Record.Carriers) > 0 && !m.oneIn(3, "the owner") {
			o.Principal = pick(m, "carrier", s.Record.Carriers...).Principal
		}
	}
	o.Epoch = m.epoch(o.Owner, o.Ref)
	if m.oneIn(6, "stranger") {
		o.Principal = pick(m, "principal", "direct", "unverified", "reserved:stranger", "reserved:aft")
	}
	o.Module = pick(m, "module", modules...)
	o.Hold = m.oneIn(2, "hold")
	o.ProofHash = pick(m, "proof", strings.Repeat("ab", 32), strings.Repeat("cd", 32), "")
	return command{
		op: "open", open: o,
		opener:   fmt.Sprintf("host%d", rapid.IntRange(0, 9).Draw(m.T, "host")),
		provider: pick(m, "provider", "module "+o.Module, "core.1"),
	}
}

// crowd is many hosts that come to one scope, and mostly stay.
func (m *machine) crowd() (list []command) {
	for _, owner := range owners {
		for _, s := range m.model.Scopes(owner) {
			o := model.Open{
				Owner: owner, Ref: s.Ref, Epoch: s.Record.Epoch, Principal: "direct", Module: "tool",
				ProofHash: s.Record.Proof, Hold: true,
			}
			if !m.model.Admits(o, m.now) {
				continue
			}
			for i := range rapid.IntRange(1, 10).Draw(m.T, "hosts") {
				list = append(list, command{op: "open", open: o, opener: fmt.Sprintf("host%d", i), provider: "module tool"})
				if !m.oneIn(3, "in flight") {
					list = append(list, command{op: "commit", route: m.last + uint64(i) + 1})
				}
			}
			return list
		}
	}
	return nil
}

// route is mostly one that is there.
func (m *machine) route(live bool) uint64 {
	if there := m.model.Routes(live); len(there) > 0 && !m.oneIn(10, "any route") {
		return pick(m, "route", there...)
	}
	return m.last - min(m.last, uint64(rapid.IntRange(0, 12).Draw(m.T, "routes back")))
}

func (m *machine) commit() command { return command{op: "commit", route: m.route(false)} }
func (m *machine) sweep() command  { return command{op: "sweep"} }

func (m *machine) release() command {
	return command{op: "release", route: m.route(m.oneIn(3, "live"))}
}

// leave and promote are rare, and an open else: what they end takes long to be.
func (m *machine) leave() command {
	if len(m.peers) == 0 || !m.oneIn(3, "somebody") {
		return m.open()
	}
	names := []string{}
	for name := range m.peers {
		names = append(names, name)
	}
	slices.Sort(names)
	return command{op: "leave", peer: pick(m, "peer", names...)}
}

func (m *machine) promote() command {
	if !m.oneIn(6, "promote") {
		return m.open()
	}
	return command{op: "promote", owner: pick(m, "owner", owners...)}
}

func (m *machine) clock() command {
	return command{op: "clock", ms: pick[int64](m, "clock", 1, 10, 99, 100, -1, -10, -100, 1_000, -2_000, 100, 99, 86_400_000)}
}
