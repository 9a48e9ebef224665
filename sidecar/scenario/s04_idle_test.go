package scenario

import (
	"testing"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

var hold1 = doc{"hold_presence": true}

// open1 is a record that direct openers carry.
func open1(ref string, epoch uint64, members ...member) doc {
	return rec(ref, epoch, append([]member{carriers("direct")}, members...)...)
}

const (
	rotated = "s@2 replaced | ended s@1"
	inUse   = "s@2 scope_epoch_in_use"
)

// idle_never_refuses_created_or_unchanged
func TestS4_TheIdleConditionRefusesNeitherCreatedNorUnchanged(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, open1("s", 1, idle)).is("s@1 created")
	r := c.opens("tool", scope("owner", "s", 1))
	o.sync(2, open1("s", 1, idle)).is("s@1 unchanged")
	o.apply(3, rec("n", 1, idle)).is("n@1 created")
	o.apply(4, open1("s", 2, idle)).is(inUse)
	r.works()
}

// idle_reserved_routes_do_not_count
func TestS4_ReservedOpenersRoutesDoNotCountAsUse(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("mate")
	s.module("tool")
	o.sync(1, rec("s", 1, carriers("mate")))
	a := c.opens("tool", scope("owner", "s", 1), s.as("owner"))
	b := c.opens("tool", scope("owner", "s", 1, hold1), s.as("mate"))
	o.apply(2, rec("s", 2, carriers("mate"), idle)).is(rotated)
	c.drained(closed("scope_ended", a, b))
}

// idle_in_flight_bind_counts
func TestS4_ADirectBindInFlightIsUseUntilItIsRejected(t *testing.T) {
	h := hold(play(t), []doc{open1("s", 1)})
	h.owner.apply(2, open1("s", 2, idle)).is(inUse)
	h.bind.Reject("no")
	h.open.Wait().Refused("no")
	h.owner.apply(3, open1("s", 2, idle)).is(rotated)
}

// idle_in_flight_bind_then_commit
func TestS4_ARefusedRotationLeavesTheBindInFlightToCommit(t *testing.T) {
	h := hold(play(t), []doc{open1("s", 1)})
	h.owner.apply(2, open1("s", 2, idle)).is(inUse)
	h.commits()
	h.owner.apply(3, open1("s", 2, idle)).is(inUse)
	h.tool.Quiet()
}

// idle_client_disconnect_frees
func TestS4_TheOnlyDirectOpenersCloseMakesTheEpochIdle(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, open1("s", 1))
	r := c.opens("tool", scope("owner", "s", 1, hold1))
	o.apply(2, open1("s", 2, idle)).is(inUse)
	c.Close()
	r.bind.NextGoodbye()
	o.apply(3, open1("s", 2, idle)).is(rotated)
}

// presence_survives_target_restart
func TestS4_PresenceOutlivesTheTargetsConnection(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	tool := s.module("tool")
	o.sync(1, open1("s", 1))
	r := c.opens("tool", scope("owner", "s", 1, hold1))
	tool.Close()
	c.lost(r)
	o.apply(2, open1("s", 2, idle)).is(inUse)
}

// presence_false_or_absent_is_none
func TestS4_WithoutHoldPresenceAClosedRouteLeavesNone(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, open1("s", 1))
	c.opens("tool", scope("owner", "s", 1, doc{"hold_presence": false})).goodbye()
	c.opens("tool", scope("owner", "s", 1)).goodbye()
	o.apply(2, open1("s", 2, idle)).is(rotated)
}

// presence_discarded_with_end_and_recreate
func TestS4_EndingTheEpochDiscardsItsHolders(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, open1("s", 1))
	r := c.opens("tool", scope("owner", "s", 1, hold1))
	o.apply(2, end("s", 1))
	c.drained(closed("scope_ended", r))
	o.apply(3, open1("s", 2)).is("s@2 created")
	o.apply(4, open1("s", 3, idle)).is("s@3 replaced | ended s@2")
}

// presence_cap_of_eight
func TestS4_EightConnectionsHoldPresenceANinthBindsAndHoldsNone(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	s.module("tool")
	o.sync(1, open1("s", 1))
	var clients []*client
	for range 9 {
		c := s.client()
		c.opens("tool", scope("owner", "s", 1, hold1)).goodbye()
		clients = append(clients, c)
	}
	o.apply(2, open1("s", 2, idle)).is(inUse)
	for _, c := range clients[:8] {
		c.Send(wire.Header{Type: wire.Goodbye}, nil) // ends its presence too
		c.Settle()
	}
	o.apply(3, open1("s", 2, idle)).is(rotated)
	clients[8].Settle()
}

// presence_of_one_epoch_only
func TestS4_PresenceBelongsToTheEpochItWasBoundUnder(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool", routertest.Declares("call-modes/v1"))
	o.sync(1, open1("s", 1), open1("t", 1))
	c.opens("tool", scope("owner", "s", 1, hold1)).goodbye()
	o.apply(2, open1("t", 2, idle), open1("s", 2, idle)).is("t@2 replaced, s@2 scope_epoch_in_use | ended t@1")
}
