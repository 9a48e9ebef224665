package scenario

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"scopeward/proxy/routertest"
)

// record_direct_cannot_sync_apply_or_describe
func TestS2_AConnectionWithoutARegistrationOwnsAndReadsNothing(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("owner")
	for _, body := range []doc{
		{"op": "scope.sync", "generation": 1, "scopes": []any{}},
		{"op": "scope.apply", "generation": 1, "upsert": []any{}, "end": []any{}},
		{"op": "scope.describe", "owner": routertest.Reserved("owner"), "ref": "s"},
		{"op": "scope.sync", "generation": "malformed"},
	} {
		c.Ask(body).Refused("not_registered")
	}
	c.refused("scope_not_live", "owner", scope("owner", "s", 1, doc{"owner": routertest.Direct()}))
}

// record_same_ref_two_owners
func TestS2_TheSameRefUnderTwoOwnersIsTwoScopes(t *testing.T) {
	s := play(t)
	o, p, c := s.module("owner"), s.module("other"), s.client()
	s.module("tool")
	o.sync(1, rec("s", 1, agent("ag")))
	p.sync(7, rec("s", 5, kind("worker")))
	a := c.opens("tool", scope("owner", "s", 1), s.as("owner")).stamped(`owner/s@1 head {"agent_id":"ag"} authorized`)
	b := c.opens("tool", scope("other", "s", 5), s.as("other")).stamped("other/s@5 worker")
	p.sync(8).is("ended s@5")
	c.drained(closed("scope_ended", b))
	a.works()
	p.reads("owner", "s").is(`live owner/s@1 head {"agent_id":"ag"} authorized`)
	p.reads("other", "s").is("ended @5")
}

// record_epoch_regressed_and_replaced
func TestS2_ALowerEpochIsRefusedAHigherOneReplaces(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1, rec("s", 5))
	o.sync(2, rec("s", 4)).is("s@4 scope_epoch_regressed")
	o.sync(3, rec("s", 5)).is("s@5 unchanged")
	o.sync(4, rec("s", 9)).is("s@9 replaced | ended s@5")
	o.reads("owner", "s").is("live owner/s@9 head authorized")
}

// record_epoch_zero_and_large
func TestS2_EveryUnsigned64BitEpochIsAsGoodAsAnother(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	const big = uint64(math.MaxUint64)
	o.sync(1, rec("zero", 0), rec("big", big)).is(fmt.Sprintf("zero@0 created, big@%d created", big))
	c.opens("tool", scope("owner", "big", big), s.as("owner")).stamped(fmt.Sprintf("owner/big@%d head authorized", big))
	c.opens("tool", scope("owner", "zero", 0), s.as("owner")).stamped("owner/zero@0 head authorized")
	for _, bad := range []any{-1, 1.5, "1", nil, true} {
		o.sync(2, rec("s", 1, with("scope_epoch", bad))).is("invalid_control_body")
	}
}

// record_carrier_targets_bounds
func TestS2_ATargetedCarrierListsOneToSixteenModules(t *testing.T) {
	o := play(t).module("owner")
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("m%d", i))
	}
	o.sync(1, rec("none", 1, carriers(to("direct"))), rec("ok", 1, carriers(to("direct", many[:16]...))), rec("many", 1, carriers(to("direct", many...)))).
		is("none@1 scope_carrier_targets_invalid, ok@1 created, many@1 scope_carrier_targets_invalid")
	o.sync(2, rec("ok", 1, carriers("tool", to("direct")))).is("ok@1 scope_carrier_targets_invalid")
	o.reads("owner", "ok").is("live owner/ok@1 head authorized")
}

// attribute_gate_for_unlisted_owner
func TestS2_OnlyAListedOwnerSetsAttributes(t *testing.T) {
	p := play(t).module("other")
	p.sync(1, rec("a", 1, agent("a")), rec("d", 1, delegates), rec("f", 1, flow("f")), rec("r", 1, agent("a"), run("r"), expires(soon(60_000))), rec("plain", 1, kind("worker"))).
		is("a@1 scope_attribute_not_permitted, d@1 scope_attribute_not_permitted, f@1 scope_attribute_not_permitted, r@1 scope_attribute_not_permitted, plain@1 created")
	p.apply(2, rec("plain", 1, kind("worker"), agent("z"))).is("plain@1 scope_attribute_not_permitted")
	p.reads("other", "plain").is("live other/plain@1 worker")
	p.reads("other", "a").is("not_live")
}

// attribute_flow_and_run_token_rule
func TestS2_AFlowOrRunIdIsAPrintableTokenOrTheWholeCallIsRefused(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1, rec("keep", 1))
	for _, name := range []string{"flow_id", "run_id"} {
		for _, bad := range []string{"", "a b", "tab\t", "café", strings.Repeat("x", 257), "\x7f"} {
			o.sync(2, rec("x", 1, agent("a"), attribute(name, bad))).is("invalid_control_body").naming(name)
		}
	}
	o.apply(2, rec("f", 1, flow(strings.Repeat("x", 256))), rec("r", 1, agent("a"), run("!~"))).is("f@1 created, r@1 created")
	o.reads("owner", "keep").is("live owner/keep@1 head authorized")
}

// attribute_run_rules
func TestS2_ARunNeedsAnAgentAndIsNoFlow(t *testing.T) {
	o := play(t).module("owner")
	run := []member{kind("ephemeral"), run("r")}
	a := agent("a")
	o.sync(1, rec("none", 1, run...), rec("both", 1, append(run, a, flow("f"))...), rec("del", 1, append(run, delegates)...), rec("ok", 1, append(run, a, delegates)...)).
		is("none@1 scope_run_id_without_agent, both@1 scope_run_id_with_flow_id, del@1 scope_delegates_without_agent, ok@1 created")
	o.reads("owner", "ok").is(`live owner/ok@1 ephemeral {"agent_id":"a","delegates":true,"run_id":"r"} authorized`)
}
