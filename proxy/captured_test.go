package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// judged opens s@1 from c through m and returns the code of the refusal, "" when
// the bind reaches the module.
func (x *misuse) judged(m *end) string {
	x.t.Helper()
	x.corr++
	x.open(x.c, 1000+x.corr)
	x.bindTo(x.c, m, 1000+x.corr, uint16(x.corr), 1)
	if refused := m.toRouter(); len(refused) > 0 {
		require.Empty(x.t, m.toPeer(), "nothing of a refused bind reaches the module")
		return x.code(x.one(refused))
	}
	require.Len(x.t, m.toPeer(), 1)
	return ""
}

func (e *end) update(corr uint64, caps ...string) {
	e.fromPeer(frame(wire.Request, corr, doc{"op": wire.OpCatalogUpdate, "provides": []any{}, "capabilities": doc{"provides": caps}}))
	e.r.one(e.toRouter())
}

func TestS4_TheCapturedConnectionsCapabilitiesAtThatMomentDecide(t *testing.T) {
	x := newMisuse(t)
	flow := record("s", 1, directCarrier)
	flow["attributes"] = doc{"flow_id": "f"}
	x.o.sync(2, flow)
	require.Equal(t, "target_flow_unsupported", x.judged(x.m))

	x.m.update(60, "call-modes/v1")
	require.Equal(t, "target_flow_unsupported", x.judged(x.m), "the router has not accepted it")
	x.m.fromRouter(frame(wire.Error, 60, wire.ErrorBody{Code: "no", Message: "m"}))
	x.m.toPeer()
	require.Equal(t, "target_flow_unsupported", x.judged(x.m), "nor will it")

	x.m.update(61, "call-modes/v1")
	x.m.fromRouter(frame(wire.Response, 61, doc{"op": wire.OpCatalogUpdate}))
	x.m.toPeer()
	require.Empty(t, x.judged(x.m))

	superseding := x.module("tool", "agent-run-scopes/v1")
	require.Equal(t, "target_flow_unsupported", x.judged(superseding), "another connection of the same module")
	require.Empty(t, x.judged(x.m))
}

func TestS11_OnlyARegisteredModuleSyncsAppliesAndReads(t *testing.T) {
	x := newMisuse(t)
	for _, op := range []string{wire.OpScopeSync, wire.OpScopeApply, wire.OpScopeDescribe} {
		require.Equal(t, "not_registered", x.code(x.c.call(op, doc{"owner": "malformed"})), op)
		require.Empty(t, x.c.toRouter(), "never forwarded")
	}
	x.m.fromPeer(wire.Header{Type: wire.Goodbye}.Append(nil))
	require.Equal(t, "not_registered", x.code(x.m.call(wire.OpScopeDescribe, doc{})))
}

func TestS11_OnlyTheCurrentLaunchHasSyncAuthority(t *testing.T) {
	r := newRig(t)
	candidate := r.module("owner")
	full := func() doc { return doc{"generation": 9, "scopes": []doc{}} }
	r.facts.stale["owner"] = true
	require.Equal(t, "scope_sync_not_authority", r.code(candidate.call(wire.OpScopeSync, full())))
	require.Empty(t, r.world.Table.Owners())
	r.facts.stale["owner"] = false
	require.Equal(t, wire.Response, candidate.call(wire.OpScopeSync, full()).Type, "promoted, it takes it")
}

func TestS5a_EndingAScopeDrainsTheRoutesOfEveryEndpointSupersededOnesToo(t *testing.T) {
	x := newMisuse(t)
	x.opened(x.c, x.m, "s", 1, 5)
	x.opened(x.c, x.module("tool"), "s", 1, 6)
	x.o.sync(2)
	frames := x.c.toPeer()
	require.Len(t, frames, 3)
	require.Equal(t, []any{5.0, 6.0}, body(t, frames[0])["channels"])
	for i, g := range x.c.toRouter() {
		require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: uint16(5 + i), Epoch: 1}, g.Header)
		require.Equal(t, g.Header, frames[1+i].Header)
	}
	for _, m := range []*end{x.m, x.ends[4]} {
		for at := range m.s.serving {
			m.fromRouter(wire.AppendGoodbye(nil, at.channel, at.epoch))
		}
	}
	x.clean()
}
