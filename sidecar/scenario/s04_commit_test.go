package scenario

import (
	"testing"
	"time"

	"scopeward/proxy/routertest"
)

// held is an open whose bind waits with the module.
type held struct {
	*stage
	owner, tool *module
	client      *client
	open        *routertest.Opening
	bind        *routertest.Bind
}

// hold plays until a direct open of owner/s@1, or as opts have it, is with the
// module.
func hold(s *stage, records []doc, opts ...routertest.OpenOption) *held {
	s.t.Helper()
	h := &held{stage: s, owner: s.module("owner"), tool: s.holding("tool"), client: s.client()}
	h.owner.sync(1, records...)
	h.again(opts...)
	return h
}

func (h *held) again(opts ...routertest.OpenOption) {
	h.t.Helper()
	h.open = h.client.StartOpen("tool", append([]routertest.OpenOption{scope("owner", "s", 1)}, opts...)...)
	h.bind = h.tool.NextBind()
}

// stale acks the bind and requires the refusal at commit.
func (h *held) stale(code string) {
	h.t.Helper()
	h.bind.Ack()
	h.open.Wait().Refused(code)
	h.bind.NextGoodbye()
	h.client.Quiet()
}

func (h *held) commits() *route {
	h.t.Helper()
	h.bind.Ack()
	return &route{h.open.Route(), h.bind, h.tool, h.client}
}

// commit_unchanged
func TestS4_ABindCommitsWhenItsScopeWasOnlySentAgain(t *testing.T) {
	s := play(t)
	h := hold(s, []doc{rec("s", 1, agent("a")), rec("x", 1)}, s.as("owner"))
	h.owner.sync(2, rec("s", 1, agent("a")), rec("other", 1)).is("s@1 unchanged, other@1 created | ended x@1")
	h.owner.apply(3).is("")
	r := h.commits()
	h.tool.Serve()
	r.works()
}

// commit_changed
func TestS4_AChangeThatDrainsNothingRefusesTheHeldBind(t *testing.T) {
	s := play(t)
	h := hold(s, []doc{rec("s", 1)}, s.as("owner"))
	h.owner.apply(2, rec("s", 1, carriers("direct"))).is("s@1 updated")
	h.stale("scope_changed")
	h.again()
	h.commits()
}

// commit_ended_and_recreated
func TestS4_AHeldBindOfAnEpochThatEndedIsScopeEndedWhateverCameAfter(t *testing.T) {
	s := play(t)
	h := hold(s, []doc{rec("s", 1)}, s.as("owner"))
	h.owner.apply(2, end("s", 1))
	h.owner.apply(3, rec("s", 2)).is("s@2 created")
	h.stale("scope_ended")
}

// commit_carrier_removed
func TestS4_ACarrierRemovedWhileItsBindIsHeldIsScopeChanged(t *testing.T) {
	h := hold(play(t), []doc{rec("s", 1, carriers("direct"))})
	h.owner.apply(2, rec("s", 1)).is("s@1 updated")
	h.stale("scope_changed")
	h.client.refused("scope_not_carrier", "tool", scope("owner", "s", 1))
}

// commit_refused_record_change_does_not_count
func TestS4_ARefusedChangeLeavesAHeldBindAlone(t *testing.T) {
	h := hold(play(t), []doc{rec("s", 1, carriers("direct")), rec("x", 1)})
	h.owner.apply(2, rec("s", 0), rec("x", 1, delegates)).is("s@0 scope_epoch_regressed, x@1 scope_delegates_without_agent")
	h.owner.sync(2).is("scope_sync_stale")
	h.owner.apply(3, end("x", 1))
	h.commits()
}

// commit_refusal_leaves_other_routes
func TestS4_ARefusalAtCommitLeavesTheModulesOtherRoutesUp(t *testing.T) {
	s := play(t)
	h := hold(s, []doc{rec("s", 1, carriers("direct")), rec("x", 1, carriers("direct"))}, scope("owner", "x", 1))
	x := h.commits()
	h.again(routertest.With("scope", nil))
	free := h.commits()
	h.again()
	h.owner.apply(2, end("s", 1))
	h.stale("scope_ended")
	h.tool.Serve()
	x.works()
	free.works()
}

// commit_two_held_binds
func TestS4_OfTwoHeldBindsTheOneAckedBeforeTheChangeDrainsTheOtherIsStale(t *testing.T) {
	s := play(t)
	h := hold(s, []doc{rec("s", 1, agent("a"), carriers("direct"))})
	first := h.commits()
	h.again()
	h.owner.apply(2, rec("s", 1, agent("b"), carriers("direct")))
	h.client.drained(closed("scope_delegation_changed", first))
	h.stale("scope_changed")
}

// commit_module_gone_while_held
func TestS4_AModuleThatGoesWhileItsBindIsHeldFreesTheEpoch(t *testing.T) {
	h := hold(play(t), []doc{rec("s", 1, carriers("direct"))})
	h.tool.Close()
	h.open.Wait().Refused("target_unavailable")
	h.owner.apply(2, rec("s", 2, carriers("direct"), idle)).is("s@2 replaced | ended s@1")
}

// commit_late_ack_after_timeout
func TestS4_AnAckAfterItsBindsTimeIsOverRevivesNothing(t *testing.T) {
	h := hold(play(t, bindTimeout(150*time.Millisecond)), []doc{rec("s", 1, carriers("direct"))})
	h.open.Wait().Refused("module_timeout")
	h.bind.NextGoodbye()
	h.bind.Ack()
	h.tool.Quiet()
	h.client.Quiet()
	h.owner.apply(2, rec("s", 2, carriers("direct"), idle)).is("s@2 replaced | ended s@1")
}
