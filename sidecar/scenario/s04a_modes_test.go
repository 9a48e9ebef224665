package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
)

const (
	callModes = "call-modes/v1"
	flows     = "flow-scopes/v1"
	runs      = "agent-run-scopes/v1"
)

// bedOfModes opens every kind of scope, and none, to a module that declares caps:
// each line is the stamp's attributes, "run" or "plain", and the call mode, or
// the refusal's code.
func bedOfModes(t *testing.T, caps ...string) []string {
	s := play(t)
	c := s.client()
	run := []member{kind("ephemeral"), agent("a"), run("r")}
	s.module("owner").sync(1, rec("plain", 1), rec("flow", 1, flow("f")), rec("agentflow", 1, flow("f"), agent("a"), delegates),
		rec("run", 1, append(run, expires(soon(60_000)))...), rec("rundel", 1, append(run, delegates)...))
	tool := s.module("tool", routertest.Declares(caps...))
	var got []string
	for _, ref := range []string{"plain", "flow", "agentflow", "run", "rundel", ""} {
		opts := []routertest.OpenOption{s.as("owner")}
		if ref != "" {
			opts = append(opts, scope("owner", ref, 1))
		}
		r := c.StartOpen("tool", opts...).Wait()
		if r.Code() != "" {
			require.Contains(t, r.Text("message"), "tool", "a gate names its target")
			got = append(got, r.Code())
			continue
		}
		b := tool.NextBind()
		require.Equal(t, ref == "", b.Scope == nil)
		got = append(got, b.CallMode)
	}
	return got
}

const (
	noFlow = "target_flow_unsupported"
	noRun  = "target_agent_run_unsupported"
)

// modes_declarer
func TestS4a_ADeclarerGetsACallModeOnEveryBind(t *testing.T) {
	require.Equal(t, []string{"classic", "flow", "flow", "codemode", "codemode", "classic"}, bedOfModes(t, callModes))
}

// modes_empty_capabilities
func TestS4_ATargetThatDeclaresNothingTakesPlainAndUnscopedBindsOnly(t *testing.T) {
	require.Equal(t, []string{"", noFlow, noFlow, noRun, noRun, ""}, bedOfModes(t))
}

// modes_legacy_run_target
func TestS4_ALegacyRunTargetTakesRunsThatDoNotDelegate(t *testing.T) {
	require.Equal(t, []string{"", noFlow, noFlow, "", noRun, ""}, bedOfModes(t, runs))
}

// modes_both_legacy
func TestS4_LegacyTargetsGetNoModeOnFlowsAndRuns(t *testing.T) {
	require.Equal(t, []string{"", "", "", "", noRun, ""}, bedOfModes(t, flows, runs))
}

// modes_similar_names_do_not_count
func TestS4_CapabilitiesAreMatchedExactly(t *testing.T) {
	require.Equal(t, []string{"", noFlow, noFlow, noRun, noRun, ""}, bedOfModes(t, "call-modes/v2", "flow-scopes/v2", "agent-run-scopes/v2"))
}

// modes_catalog_update_replaces_capabilities
func TestS4_ACatalogUpdateReplacesTheCapabilitiesForLaterBinds(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("owner").sync(1, open1("flow", 1, flow("f")), open1("plain", 1))
	tool := s.module("tool", routertest.Declares())
	c.refused(noFlow, "tool", scope("owner", "flow", 1))
	tool.Update(callModes)
	r := c.opens("tool", scope("owner", "flow", 1)).stamped(`owner/flow@1 head {"flow_id":"f"} authorized flow`)
	tool.Ready() // names no capabilities: they stay
	c.opens("tool", scope("owner", "plain", 1)).stamped("owner/plain@1 head authorized classic")
	tool.Update()
	c.refused(noFlow, "tool", scope("owner", "flow", 1))
	c.opens("tool", scope("owner", "plain", 1)).stamped("owner/plain@1 head authorized")
	r.works()
}

// modes_call_mode_claim_is_ignored
func TestS4a_ACallerCannotClaimAMode(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("owner").sync(1, open1("plain", 1))
	s.module("tool", routertest.Declares(callModes))
	s.module("util")
	claim := routertest.With("call_mode", "codemode")
	c.opens("tool", scope("owner", "plain", 1), claim).stamped("owner/plain@1 head authorized classic")
	c.opens("tool", claim).stamped("unscoped classic")
	c.opens("util", claim).stamped("unscoped")
}

// modes_refused_open_leaves_no_usage
func TestS4_AGatesRefusalReservesNothing(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, open1("s", 1, flow("f")))
	c.refused(noFlow, "tool", scope("owner", "s", 1, hold1))
	o.apply(2, open1("s", 2, flow("f"), idle)).is(rotated)
}
