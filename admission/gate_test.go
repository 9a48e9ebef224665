package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gateRow is one row of the contract's prose as a table: what a scope carries,
// and which capabilities let it through.
type gateRow struct {
	attributes string
	refusal    Code
	opens      []Capability
	mode       CallMode // a declarer's
}

var gateRows = []gateRow{
	{"", "", nil, Classic},
	{`"agent_id":"a"`, "", nil, Classic},
	{`"agent_id":"a","delegates":true`, "", nil, Classic},
	{`"flow_id":"f"`, CodeFlowUnsupported, []Capability{CallModes, FlowScopes}, Flow},
	{`"agent_id":"a","flow_id":"f"`, CodeFlowUnsupported, []Capability{CallModes, FlowScopes}, Flow},
	{`"agent_id":"a","delegates":true,"flow_id":"f"`, CodeFlowUnsupported, []Capability{CallModes, FlowScopes}, Flow},
	{`"agent_id":"a","run_id":"r"`, CodeAgentRunUnsupported, []Capability{CallModes, AgentRunScopes}, Codemode},
	{`"agent_id":"a","delegates":true,"run_id":"r"`, CodeAgentRunUnsupported, []Capability{CallModes}, Codemode},
}

// nearMisses look like the capabilities that matter and are others.
var nearMisses = []Capability{
	"call-modes/v2", "call-modes", "Call-Modes/v1", "call-modes/v1 ", "flow-scopes/v2", "flow-scope/v1",
	"agent-run-scopes/v2", "agent-run-scopes", "x/v1", "",
}

func TestS4_TheGatesAgreeWithTheTableOfTheContract(t *testing.T) {
	w := newTestWorld(t)
	var records []string
	for i, row := range gateRows {
		records = append(records, record(rowRef(i), `"attributes":{`+row.attributes+`}`, `"expires_at_ms":1900000001000`))
	}
	w.sync("core", records...)
	real := []Capability{CallModes, FlowScopes, AgentRunScopes}

	check := func(i int, provides []Capability) {
		row := gateRows[i]

		has := map[Capability]bool{}
		for _, c := range provides {
			has[c] = true
		}
		open := row.refusal == ""
		for _, c := range row.opens {
			open = open || has[c]
		}

		d := w.admit(rowRef(i), by(core), declaring(provides...))
		if !open {
			require.Equal(t, row.refusal, d.Code)
			require.Equal(t, Refused, d.Verdict)
			require.Contains(t, d.Message, `"tool"`)
			for _, c := range row.opens {
				require.Contains(t, d.Message, string(c))
			}
			require.Equal(t, strings.Contains(row.attributes, "delegates") && row.refusal == CodeAgentRunUnsupported,
				strings.Contains(d.Message, "delegates"))
			require.False(t, d.Code.Retryable())
			return
		}
		require.Equal(t, Admitted, d.Verdict, d.Message)
		if has[CallModes] {
			require.Equal(t, row.mode, d.Mode)
			require.Contains(t, string(d.Stamp), `"expires_at_ms":1900000001000`)
		} else {
			require.Empty(t, d.Mode)
			require.NotContains(t, string(d.Stamp), "expires_at_ms")
		}
		require.True(t, w.table.Release(d.Route))
	}
	for i := range gateRows {
		for set := range 1 << len(real) {
			var provides []Capability
			for bit, c := range real {
				if set>>bit&1 == 1 {
					provides = append(provides, c)
				}
			}
			check(i, provides)
			check(i, append(provides, nearMisses...))
		}
	}
}

func rowRef(i int) string { return "row" + string(rune('a'+i)) }

func TestS4_ADelegatingRunBindsToADeclarerOnly(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core",
		record("run", `"attributes":{"agent_id":"a","run_id":"r"}`),
		record("delegating", `"attributes":{"agent_id":"a","run_id":"r","delegates":true}`))
	requireAdmitted(t, w.admit("run", by(core), declaring(AgentRunScopes)))
	d := w.admit("delegating", by(core), declaring(AgentRunScopes, FlowScopes))
	requireRefused(t, CodeAgentRunUnsupported, "4 run gate", d)
	require.NotContains(t, d.Message, string(AgentRunScopes), "the legacy capability would not help")
	requireAdmitted(t, w.admit("delegating", by(core), declaring(CallModes)))
}
