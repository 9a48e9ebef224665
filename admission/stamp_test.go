package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The stamps of native binds, member for member, in the order of the contract.
func TestS4_TheStampHasTheNativeShape(t *testing.T) {
	const deadline = `"expires_at_ms":1900000001000`
	const parent = `"parent":{"owner":{"kind":"reserved","module_id":"core"},"ref":"head","scope_epoch":5}`
	w := newTestWorld(t)
	w.sync("core",
		record("head", `"child_owners":[{"kind":"reserved","module_id":"plain"}]`),
		record("agent", deadline, `"attributes":{"agent_id":"a","delegates":false}`),
		record("run", deadline, `"attributes":{"agent_id":"a","run_id":"r","delegates":true}`),
		record("flow", `"attributes":{"flow_id":"f"}`),
		record("child", parent, deadline, `"attributes":{"agent_id":"a"}`))
	w.sync("plain",
		record("plain", directCarries, deadline),
		record("child", parent),
		record("orphan", `"parent":{"owner":{"kind":"reserved","module_id":"mate"},"ref":"m","scope_epoch":0}`))

	head := `{"owner":{"kind":"reserved","module_id":"core"},"ref":"`
	other := `{"owner":{"kind":"reserved","module_id":"plain"},"ref":"`
	for _, c := range []struct {
		owner, ref      string
		legacy, declare string // what either kind of target sees
	}{
		{"core", "head",
			head + `head","scope_epoch":5,"kind":"head","owner_authorized":true}`, ""},
		{"core", "agent",
			head + `agent","scope_epoch":5,"kind":"head","attributes":{"agent_id":"a"},"owner_authorized":true}`,
			head + `agent","scope_epoch":5,"kind":"head","attributes":{"agent_id":"a"},"owner_authorized":true,` + deadline + `}`},
		{"core", "run", "",
			head + `run","scope_epoch":5,"kind":"head","attributes":{"agent_id":"a","delegates":true,"run_id":"r"},"owner_authorized":true,` + deadline + `}`},
		{"core", "flow",
			head + `flow","scope_epoch":5,"kind":"head","attributes":{"flow_id":"f"},"owner_authorized":true}`, ""},
		{"core", "child",
			head + `child","scope_epoch":5,"kind":"head",` + parent + `,"parent_state":"linked","attributes":{"agent_id":"a"},"owner_authorized":true}`,
			head + `child","scope_epoch":5,"kind":"head",` + parent + `,"parent_state":"linked","attributes":{"agent_id":"a"},"owner_authorized":true,` + deadline + `}`},
		{"plain", "plain",
			other + `plain","scope_epoch":5,"kind":"head","owner_authorized":false}`,
			other + `plain","scope_epoch":5,"kind":"head","owner_authorized":false,` + deadline + `}`},
		{"plain", "child",
			other + `child","scope_epoch":5,"kind":"head",` + parent + `,"parent_state":"linked","owner_authorized":false}`, ""},
		{"plain", "orphan",
			other + `orphan","scope_epoch":5,"kind":"head","parent":{"owner":{"kind":"reserved","module_id":"mate"},"ref":"m","scope_epoch":0},"parent_state":"pending","owner_authorized":false}`, ""},
	} {
		owner := core
		if c.owner == "plain" {
			owner = plain
		}
		if c.declare == "" {
			c.declare = c.legacy
		}
		declared := w.admit(c.ref, of(owner), by(owner), declaring(CallModes))
		requireAdmitted(t, declared)
		require.Equal(t, c.declare, string(declared.Stamp))
		if c.legacy == "" {
			continue
		}
		legacy := w.admit(c.ref, of(owner), by(owner), declaring(FlowScopes, AgentRunScopes))
		requireAdmitted(t, legacy)
		require.Equal(t, c.legacy, string(legacy.Stamp))
	}
}

func TestS2_OwnerAuthorizedIsTrueForListedOwnersOnly(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s"))
	w.sync("plain", record("s"))
	require.Contains(t, string(w.admit("s", by(core)).Stamp), `"owner_authorized":true`)
	require.Contains(t, string(w.admit("s", of(plain), by(plain)).Stamp), `"owner_authorized":false`)
}

func TestS4_TheStampNeverHoldsTheHash(t *testing.T) {
	w := newTestWorld(t)
	proof, hash := secret(3)
	w.sync("core", record("s", hash, directCarries))
	d := w.admit("s", proving(proof), declaring(CallModes))
	requireAdmitted(t, d)
	require.NotContains(t, string(d.Stamp), "proof")
}
