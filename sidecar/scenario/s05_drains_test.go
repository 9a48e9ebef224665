package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// bed is everybody that a drain may concern.
type bed struct {
	*stage
	o, tool *module
	c       *client
}

func bedOfDrains(t *testing.T, records ...doc) *bed {
	s := play(t)
	b := &bed{stage: s, o: s.module("owner"), c: s.client()}
	s.module("mate")
	b.tool = s.module("tool", routertest.Declares(callModes))
	s.module("util", routertest.Declares(callModes))
	b.o.sync(1, records...)
	return b
}

// opens opens a route to target under ref@1 as who.
func (b *bed) opens(target, ref, who string) *route {
	b.t.Helper()
	if who == "direct" {
		return b.c.opens(target, scope("owner", ref, 1))
	}
	return b.c.opens(target, scope("owner", ref, 1), b.as(who))
}

// drain_direct_carrier_removed
func TestS5a_RemovingDirectDrainsEveryDirectOpenersRoutes(t *testing.T) {
	b := bedOfDrains(t, rec("s", 1, carriers("mate", "direct")))
	direct, mate := b.opens("tool", "s", "direct"), b.opens("tool", "s", "mate")
	b.o.sync(2, rec("s", 1, carriers("mate"))).is("s@1 updated")
	b.c.drained(closed("scope_carrier_removed", direct))
	mate.works()
}

// drain_target_removed
func TestS5a_RemovingATargetDrainsThatCarriersRoutesToItOnly(t *testing.T) {
	b := bedOfDrains(t, rec("s", 1, carriers(to("mate", "tool", "util"), "direct")))
	tool, util, direct := b.opens("tool", "s", "mate"), b.opens("util", "s", "mate"), b.opens("tool", "s", "direct")
	b.o.apply(2, rec("s", 1, carriers(to("mate", "util"), "direct")))
	b.c.drained(closed("scope_carrier_removed", tool))
	util.works()
	direct.works()
}

// drain_widening_changes_nothing
func TestS5a_WideningDrainsNothing(t *testing.T) {
	b := bedOfDrains(t, rec("s", 1, carriers(to("mate", "tool"))))
	r := b.opens("tool", "s", "mate")
	b.o.apply(2, rec("s", 1, carriers(to("mate", "tool"), "direct"))).is("s@1 updated")
	b.o.apply(3, rec("s", 1, carriers(to("mate", "tool", "util"), "direct"))).is("s@1 updated")
	b.o.apply(4, rec("s", 1, carriers("mate", "direct"))).is("s@1 updated")
	b.c.Quiet()
	r.works()
}

// drain_split_and_merged_entries
func TestS5a_SplittingAndMergingEntriesOfOneUnionDrainsNothing(t *testing.T) {
	b := bedOfDrains(t, rec("s", 1, carriers(to("mate", "tool", "util"))))
	r := b.opens("tool", "s", "mate")
	b.o.apply(2, rec("s", 1, carriers(to("mate", "util"), to("mate", "tool"))))
	b.o.apply(3, rec("s", 1, carriers(to("mate", "util", "tool"))))
	b.c.Quiet()
	r.works()
	b.o.apply(4, rec("s", 1, carriers(to("mate", "tool"), "mate")))
	b.o.apply(5, rec("s", 1, carriers(to("mate", "util"))))
	b.c.drained(closed("scope_carrier_removed", r))
}

// drain_flow_changed_added_removed
func TestS5a_AddingChangingAndRemovingAFlowEachDrain(t *testing.T) {
	b := bedOfDrains(t, rec("s", 1))
	for generation, next := range []doc{rec("s", 1, flow("f")), rec("s", 1, flow("g")), rec("s", 1)} {
		r := b.opens("tool", "s", "owner")
		b.o.apply(uint64(generation+2), next).is("s@1 updated")
		b.c.drained(closed("scope_delegation_changed", r))
	}
	b.o.apply(5, rec("s", 1)).is("s@1 unchanged")
}

// drain_one_reason_delegation_beats_carrier, drain_one_reason_parent_beats_delegation, drain_one_reason_ended_beats_all
func TestS11_OneReasonARouteEndedThenParentThenDelegationThenCarrier(t *testing.T) {
	under := parent("owner", "p", 1)
	for reason, change := range map[string][]any{
		"scope_delegation_changed": {rec("s", 1, agent("b"), under)},
		"scope_parent_ended":       {rec("s", 1, agent("b"), under), end("p", 1)},
		"scope_ended":              {rec("s", 2), end("p", 1)},
	} {
		t.Run(reason, func(t *testing.T) {
			b := bedOfDrains(t, rec("p", 1), rec("s", 1, agent("a"), under, carriers("mate")))
			mate, own := b.opens("tool", "s", "mate"), b.opens("tool", "s", "owner")
			b.o.apply(2, change...)
			b.c.drained(closed(reason, mate, own))
		})
	}
}

// drain_several_scopes_one_call
func TestS5a_OnePushForEachModuleAndReasonThenEveryGoodbye(t *testing.T) {
	b := bedOfDrains(t, rec("a", 1, agent("x")), rec("b", 1, carriers("mate")), rec("e", 1), rec("keep", 1))
	at, au := b.opens("tool", "a", "owner"), b.opens("util", "a", "owner")
	bt := b.opens("tool", "b", "mate")
	et, eu := b.opens("tool", "e", "owner"), b.opens("util", "e", "owner")
	keep := b.opens("tool", "keep", "owner")
	b.o.sync(2, rec("a", 1, agent("y")), rec("b", 1), rec("keep", 1)).is("a@1 updated, b@1 updated, keep@1 unchanged | ended e@1")
	b.c.drained(closed("scope_carrier_removed", bt), closed("scope_delegation_changed", at), closed("scope_ended", et),
		closed("scope_delegation_changed", au), closed("scope_ended", eu))
	keep.works()
}

// drain_in_flight_call
func TestS5a_ACallInFlightOnADrainedRouteEndsAsAClosedRoute(t *testing.T) {
	s := play(t)
	h := hold(s, []doc{open1("s", 1)})
	r := h.commits()
	call := r.Start([]byte("long"))
	request := h.tool.Next()
	h.owner.sync(2)
	h.client.drained(closed("scope_ended", r))
	h.tool.Send(wire.Header{Type: wire.Response, Channel: request.Channel, Epoch: request.Epoch, Corr: request.Corr}, []byte("too late"))
	h.tool.Settle()
	h.client.Quiet()
	require.False(t, call.Answered())
}

// drain_reopen_after_delegation_change
func TestS5a_AfterADelegationChangeTheSameEpochOpensWithTheNewStamp(t *testing.T) {
	b := bedOfDrains(t, open1("s", 1, agent("a"), delegates))
	r := b.opens("tool", "s", "direct")
	b.o.apply(2, open1("s", 1, agent("b"), delegates))
	b.c.drained(closed("scope_delegation_changed", r))
	b.opens("tool", "s", "direct").stamped(`owner/s@1 head {"agent_id":"b","delegates":true} authorized classic`).works()
}
