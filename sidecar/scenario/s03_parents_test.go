package scenario

import (
	"testing"

	"scopeward/proxy/routertest"
)

// parent_from_owner_or_child_owner_only
func TestS3_AParentIsItsOwnersOrAChildOwnersAtItsLiveEpoch(t *testing.T) {
	s := play(t)
	o, k := s.module("owner"), s.module("kid")
	o.sync(1, rec("open", 2, children("kid")), rec("shut", 1), rec("carried", 1, carriers("kid")), rec("mine", 1, parent("owner", "open", 2))).
		is("open@2 created, shut@1 created, carried@1 created, mine@1 created linked")
	const no = " scope_parent_not_permitted"
	k.sync(1, rec("a", 1, parent("owner", "open", 2)), rec("b", 1, parent("owner", "shut", 1)), rec("c", 1, parent("owner", "open", 1)),
		rec("d", 1, parent("owner", "none", 1)), rec("e", 1, parent("owner", "carried", 1)), rec("f", 1)).
		is("a@1 created linked, b@1" + no + ", c@1" + no + ", d@1" + no + ", e@1" + no + ", f@1 created")
}

// parent_pending_then_linked
func TestS2_AChildBeforeItsParentsOwnerIsPendingThenLinked(t *testing.T) {
	s := play(t)
	k := s.module("kid")
	k.sync(1, rec("a", 1, parent("owner", "p", 1))).is("a@1 created pending")
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 pending")
	s.module("owner").sync(1, rec("p", 1, children("kid")))
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 linked")
	k.sync(2, rec("a", 1, parent("owner", "p", 1))).is("a@1 unchanged linked")
}

// parent_pending_settling_bumps_version
func TestS11_APendingLinkThatSettlesMakesABindInFlightStale(t *testing.T) {
	s := play(t)
	k, tool, c := s.module("kid"), s.holding("tool"), s.client()
	k.sync(1, rec("a", 1, parent("owner", "p", 1)))
	h := c.StartOpen("tool", scope("kid", "a", 1), s.as("kid"))
	b := tool.NextBind()
	s.module("owner").sync(1, rec("p", 1, children("kid")))
	b.Ack()
	h.Wait().Refused("scope_changed")
	b.NextGoodbye()
}

// parent_cycle_by_update
func TestS3_AChainClosedIntoARingIsRefusedAndTheHeldRecordsStay(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1, rec("a", 1), rec("b", 1, parent("owner", "a", 1)), rec("c", 1, parent("owner", "b", 1)))
	o.apply(2, rec("a", 1, parent("owner", "c", 1))).is("a@1 scope_parent_not_permitted")
	o.apply(3, rec("a", 2, parent("owner", "c", 1))).is("a@2 scope_parent_not_permitted")
	o.reads("owner", "a").is("live owner/a@1 head authorized")
	o.reads("owner", "c").is("live owner/c@1 head under owner/b@1 linked authorized")
}

// parent_chain_ending_is_one_level
func TestS3_OnlyTheDirectChildrenOfAnEndedParentDrain(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, rec("p", 1), rec("c", 1, parent("owner", "p", 1)), rec("g", 1, parent("owner", "c", 1)))
	child := c.opens("tool", scope("owner", "c", 1), s.as("owner"))
	grandchild := c.opens("tool", scope("owner", "g", 1), s.as("owner"))
	o.apply(2, end("p", 1)).is("ended p@1 | p@1 ended")
	c.drained(closed("scope_parent_ended", child))
	grandchild.works()
	o.reads("owner", "g").is("live owner/g@1 head under owner/c@1 linked authorized")
}

// parent_child_owner_removed_keeps_link
func TestS11_RemovingAChildOwnerEndsNoLinkAndAdmitsNoNewOne(t *testing.T) {
	s := play(t)
	o, k, c := s.module("owner"), s.module("kid"), s.client()
	s.module("tool")
	o.sync(1, rec("p", 1, children("kid")))
	k.sync(1, rec("a", 1, parent("owner", "p", 1)))
	r := c.opens("tool", scope("kid", "a", 1), s.as("kid"))
	o.sync(2, rec("p", 1)).is("p@1 updated")
	c.Quiet()
	k.sync(2, rec("a", 1, parent("owner", "p", 1)), rec("b", 1, parent("owner", "p", 1))).is("a@1 unchanged linked, b@1 scope_parent_not_permitted")
	r.works()
}

// parent_empty_first_sync_ends_pending
func TestS2_AnEmptyFirstSyncOfTheParentsOwnerEndsPendingLinks(t *testing.T) {
	s := play(t)
	k := s.module("kid", routertest.Declares())
	k.sync(1, rec("a", 1, parent("owner", "p", 1)))
	o := s.module("owner")
	o.sync(1)
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 ended")
	o.sync(2, rec("p", 1, children("kid"))).is("p@1 created")
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 ended")
}
