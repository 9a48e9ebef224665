package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// open_targeted_carrier
func TestS4_ATargetedCarrierOpensToItsListedModulesOnly(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("mate")
	s.module("tool")
	o.sync(1, rec("s", 1, carriers(to("mate", "tool"), to("direct", "mate"))), rec("two", 1, carriers(to("mate", "owner"), to("mate", "tool"))))
	c.opens("tool", scope("owner", "s", 1), s.as("mate"))
	c.refused("scope_not_carrier", "owner", scope("owner", "s", 1), s.as("mate"))
	c.opens("mate", scope("owner", "s", 1))
	c.refused("scope_not_carrier", "tool", scope("owner", "s", 1))
	c.opens("tool", scope("owner", "two", 1), s.as("mate"))
	c.opens("owner", scope("owner", "two", 1), s.as("mate"))
	c.refused("scope_not_carrier", "mate", scope("owner", "two", 1), s.as("mate"))
}

// open_not_synced_then_not_live
func TestS4_BeforeTheFirstSyncIsNotSyncedAfterItNotLive(t *testing.T) {
	s := play(t)
	s.module("tool")
	c := s.client()
	c.refused("scope_not_synced", "tool", scope("owner", "s", 1))
	o := s.module("owner")
	c.refused("scope_not_synced", "tool", scope("owner", "s", 1), s.as("owner"))
	o.sync(1)
	require.Contains(t, c.refused("scope_not_live", "tool", scope("owner", "s", 1), s.as("owner")), "s")
	o.sync(2, rec("s", 1))
	c.opens("tool", scope("owner", "s", 1), s.as("owner"))
}

// open_owner_not_configured
func TestS4_AnOwnerThatIsNotConfiguredIsNotLiveADisabledOneNotSynced(t *testing.T) {
	s := play(t)
	tool, c := s.module("tool"), s.client()
	c.refused("scope_not_live", "tool", scope("nobody", "s", 1))
	c.refused("scope_not_synced", "tool", scope("off", "s", 1))
	tool.reads("nobody", "s").is("not_live unsynced unconfigured")
	tool.reads("off", "s").is("not_live unsynced")
}

// open_wrong_epoch_is_ended
func TestS4_AnotherEpochThanTheLiveOneIsEnded(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, rec("s", 5, carriers("direct")))
	require.Contains(t, c.refused("scope_ended", "tool", scope("owner", "s", 4)), "s")
	c.refused("scope_ended", "tool", scope("owner", "s", 6), s.as("owner"))
	c.opens("tool", scope("owner", "s", 5)).stamped("owner/s@5 head authorized")
}

// open_bad_identity_precedes_scope
func TestS4_AWrongLaunchNonceIsRefusedBeforeAnyScopeCheck(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, rec("s", 1, carriers("direct")))
	stolen := func(id string) routertest.OpenOption {
		return routertest.As(routertest.Launch{ModuleID: id, Nonce: o.launch.Nonce})
	}
	c.refused("bad_consumer_identity", "tool", scope("owner", "s", 1), stolen("tool"))
	c.refused("bad_consumer_identity", "tool", scope("owner", "s", 1), stolen("nobody"))
	c.refused("bad_consumer_identity", "tool", stolen("mate"))
	c.opens("tool", scope("owner", "s", 1), stolen("owner"))
}

// open_target_checks_precede_scope
func TestS4_TheRoutersOwnChecksOfTheTargetComeFirst(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	o.sync(1, rec("s", 1))
	c.refused("unknown_module", "nowhere", scope("owner", "x", 1))
	s.module("tool", routertest.Roles())
	c.refused("target_unavailable", "tool", scope("owner", "s", 1), s.as("owner"))
	c.refused("target_unavailable", "tool", scope("owner", "x", 9))
}

// open_selector_malformed
func TestS4_AMalformedSelectorIsAMalformedBodyNeverAnUnscopedOpen(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, rec("s", 1, carriers("direct")))
	tool, c := s.module("tool"), s.client()
	for _, bad := range []any{
		"owner/s", 5, []any{}, doc{}, false, doc{"owner": "owner", "ref": "s", "scope_epoch": 1},
		doc{"owner": routertest.Reserved("owner"), "scope_epoch": 1},
	} {
		c.refused("invalid_control_body", "tool", routertest.Scope(bad))
	}
	for _, m := range []doc{{"scope_epoch": "1"}, {"scope_epoch": -1}, {"ref": 5}, {"bind_proof": 5}, {"hold_presence": nil}, {"x": 1}, {"kind": "head"}} {
		c.refused("invalid_control_body", "tool", scope("owner", "s", 1, m))
	}
	tool.NoBind()
}

// open_consumer_capabilities_verbatim
func TestS4_ConsumerCapabilitiesReachTheBindAsSent(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, rec("s", 1, carriers("direct")))
	s.module("tool")
	c := s.client()
	sent := []string{"b", "a", "b", "é x", ""}
	require.Equal(t, &sent, c.opens("tool", scope("owner", "s", 1), routertest.Capabilities(sent...)).bind.Capabilities)
	require.Equal(t, &[]string{}, c.opens("tool", scope("owner", "s", 1), routertest.Capabilities()).bind.Capabilities)
	require.Nil(t, c.opens("tool", scope("owner", "s", 1)).bind.Capabilities)
	require.Nil(t, c.opens("tool").bind.Capabilities)
}

// open_module_rejection_is_relayed
func TestS4_AModulesOwnRefusalOfAScopedBindReachesTheOpenerVerbatim(t *testing.T) {
	s := play(t)
	s.module("owner").sync(1, rec("s", 1, carriers("direct")))
	tool, c := s.holding("tool"), s.client()
	h := c.StartOpen("tool", scope("owner", "s", 1))
	b := tool.NextBind()
	body := wire.ErrorBody{Code: "my_code", Message: "my message", Detail: []byte(`{"k":[1,"x"]}`)}
	tool.SendRaw(wire.AppendError(nil, wire.ControlChannel, 0, b.Corr, body))
	r := h.Wait().Refused("my_code")
	require.Equal(t, "my message", r.Text("message"))
	require.JSONEq(t, `{"k":[1,"x"]}`, string(r.Member("detail")))
	tool.Quiet()
}

// open_many_clients_one_scope
func TestS5a_RoutesOfSeveralConnectionsEachDrainOnTheirOwn(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	s.module("tool")
	o.sync(1, rec("s", 1, carriers("direct")))
	one, two := s.client(), s.client()
	a, b := one.opens("tool", scope("owner", "s", 1)), two.opens("tool", scope("owner", "s", 1))
	free := one.opens("tool")
	o.sync(2).is("ended s@1")
	require.Equal(t, "scope_ended", one.NextPush(wire.OpRouteClosed).Text("reason"))
	a.NextGoodbye()
	require.Equal(t, "scope_ended", two.NextPush(wire.OpRouteClosed).Text("reason"))
	b.NextGoodbye()
	a.at.NextGoodbyes(a.bind, b.bind)
	free.works()
}

// open_module_dies_under_scoped_route
func TestS6_AModulesCloseClosesScopedRoutesForItsOwnReason(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	tool := s.module("tool")
	o.sync(1, rec("s", 1, carriers("direct")))
	r := c.opens("tool", scope("owner", "s", 1))
	tool.leave()
	c.lost(r)
	s.launched(tool.launch).Serve()
	r = c.opens("tool", scope("owner", "s", 1))
	o.sync(2)
	c.drained(closed("scope_ended", r))
}
