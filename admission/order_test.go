package admission

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

// breakage makes one rule fail and no other. prepared says that it is done to the
// table, before the ask.
type breakage struct {
	rule string
	code Code
	ask  func(*Ask)
}

// breakages are in the contract's order, written here a second time.
func breakages() []breakage {
	proof, _ := secret(9)
	return []breakage{
		{"4 epoch named", CodeEpochRequired, unnamed},
		{"4 owner synced", CodeNotSynced, func(a *Ask) { a.Selector.Owner, a.Roster = plain, Configured }},
		{"4 ref live", CodeNotLive, func(a *Ask) { a.Selector.Ref = "other" }},
		{"4 epoch live", CodeEnded, func(a *Ask) { a.Selector.Epoch = broken(a.Selector.Epoch) }},
		{"2 deadline ahead", CodeNotLive, when(now + 1000)},
		{"4 carrier", CodeNotCarrier, to("elsewhere")},
		{"4 bind proof", CodeBindProofMismatch, proving(proof)},
		{"4 flow gate", CodeFlowUnsupported, declaring()},
		{"4 run gate", CodeAgentRunUnsupported, declaring()},
	}
}

// broken is another epoch; one that is not named stays so.
func broken(epoch *uint64) *uint64 {
	if epoch == nil {
		return nil
	}
	return ptr(*epoch + 1)
}

// orderWorld holds a flow and a run that every rule has a say about, and a good
// ask of each.
func orderWorld(t *testing.T) (w *world, good func(*Ask)) {
	w = newTestWorld(t)
	proof, hash := secret(1)
	rest := []string{
		hash, `"expires_at_ms":1900000001000`,
		`"carriers":[{"principal":{"kind":"direct"},"targets":["tool"]}]`,
	}
	w.sync("core",
		record("flow", append(rest, `"attributes":{"agent_id":"a","flow_id":"f"}`)...),
		record("run", append(rest, `"attributes":{"agent_id":"a","run_id":"r"}`)...))
	return w, func(a *Ask) {
		a.Selector.BindProof = &proof
		a.Capabilities = NewCapabilities(CallModes)
	}
}

func TestS4_TheRulesRunInTheContractsOrder(t *testing.T) {
	order := breakages()
	names := make([]string, len(order))
	for i, b := range order {
		names[i] = b.rule
	}
	have := make([]string, 0, len(order))
	for _, r := range rules() {
		have = append(have, r.name)
	}
	require.Equal(t, names, have)

	w, good := orderWorld(t)
	for _, ref := range []string{"flow", "run"} {
		requireAdmitted(t, w.admit(ref, good))
	}
	ref := func(b breakage) string {
		if b.rule == "4 run gate" {
			return "run"
		}
		return "flow"
	}
	for i, first := range order {
		alone := w.admit(ref(first), good, first.ask)
		requireRefused(t, first.code, first.rule, alone)
		for _, second := range order[i+1:] {
			if first.rule == "4 flow gate" {
				continue // no record has both gates: see below
			}
			both := w.admit(ref(second), good, first.ask, second.ask)
			requireRefused(t, first.code, first.rule, both)
			swapped := w.admit(ref(second), good, second.ask, first.ask)
			requireRefused(t, first.code, first.rule, swapped)
		}
	}
}

// A record cannot carry both identities (section 2), so only a made-up state
// shows which gate is first.
func TestS4_TheFlowGateRunsBeforeTheRunGate(t *testing.T) {
	id := "x"
	live := &table.Scope{
		ID:     table.ScopeID{Key: table.Key{Owner: core, Ref: "s"}, Epoch: 5},
		Record: &table.Record{Attributes: table.Attributes{FlowID: &id, RunID: &id}},
	}
	for capability, code := range map[Capability]Code{
		"":             CodeFlowUnsupported,
		AgentRunScopes: CodeFlowUnsupported,
		FlowScopes:     CodeAgentRunUnsupported,
		CallModes:      "",
	} {
		a := prepare(Ask{
			Selector:  Selector{Owner: core, Ref: "s", Epoch: ptr(uint64(5))},
			Principal: core, Capabilities: NewCapabilities(capability),
		})
		require.Equal(t, code, look(a, table.State{Synced: true, Live: live}, rules()).code)
	}
}

func TestTheRulesAllocateNothingUnderTheLock(t *testing.T) {
	w, good := orderWorld(t)
	order := rules()
	for _, b := range append(breakages(), breakage{rule: "none", ask: func(*Ask) {}}) {
		a := prepare(w.ask("flow", good, b.ask))
		var allocs float64
		w.table.Reserve(a.reservation(), func(s table.State) bool {
			allocs = testing.AllocsPerRun(10, func() { look(a, s, order) })
			return false
		})
		require.Zero(t, allocs, b.rule)
	}
}
