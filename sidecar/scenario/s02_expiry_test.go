package scenario

import (
	"math"
	"testing"

	"scopeward/proxy/routertest"
)

// expiry_is_immutable_on_a_live_epoch
func TestS2_ADeadlineIsFixedForTheLifeOfAnEpoch(t *testing.T) {
	s := play(t)
	o, at := s.module("owner"), soon(60_000)
	o.sync(1, rec("s", 1, expires(at)), rec("n", 1))
	const immutable = "s@1 scope_expiry_immutable, n@1 scope_expiry_immutable"
	o.sync(2, rec("s", 1, expires(soon(70_000))), rec("n", 1, expires(at))).is(immutable)
	o.sync(3, rec("s", 1), rec("n", 1, expires(soon(-1000)))).is(immutable)
	o.sync(4, rec("s", 1, expires(math.MaxUint64)), rec("n", 1, expires(math.MaxUint64))).is(immutable)
	o.sync(5, rec("s", 1, expires(at)), rec("n", 1)).is("s@1 unchanged, n@1 unchanged")
	o.reads("owner", "s").is("live owner/s@1 head expires authorized")
	o.sync(6, rec("s", 2, expires(soon(90_000))), rec("n", 2, expires(at))).is("s@2 replaced, n@2 replaced | ended n@1, s@1")
}

// expiry_higher_epoch_with_bad_deadline_keeps_the_old
func TestS2_AReplacementRefusedForItsDeadlineLeavesTheHeldEpochAlone(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, rec("s", 1))
	r := c.opens("tool", scope("owner", "s", 1), s.as("owner"))
	o.sync(2, rec("s", 2, expires(soon(-1000)))).is("s@2 scope_expired")
	o.sync(3, rec("s", 2, expires(math.MaxUint64))).is("s@2 scope_expiry_too_far")
	o.reads("owner", "s").is("live owner/s@1 head authorized")
	r.works()
}

// expiry_ends_after_authority_closed
func TestS2_TheSweepNeedsNoAuthorityAndLeavesGenerationAndAuthorityAlone(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	tool := s.module("tool")
	at := soon(3000) // the route is open by then
	o.sync(10, rec("a", 1, expires(at), carriers("direct")), rec("b", 1)).is("a@1 created, b@1 created")
	r := c.opens("tool", scope("owner", "a", 1))
	o.leave()
	c.drained(closed("scope_ended", r))
	tool.reads("owner", "a").is("ended @1")
	o = s.launched(o.launch)
	o.apply(11).is("scope_sync_required")
	o.sync(3, rec("a", 1, expires(at)), rec("b", 1)).is("a@1 scope_expired, b@1 unchanged")
}

// expiry_tombstone_cause_by_omission
func TestS2_EndingBeforeTheDeadlineIsOwnerEndedNotExpired(t *testing.T) {
	o := play(t).module("owner")
	at := expires(soon(60_000))
	o.sync(1, rec("omit", 1, at), rec("end", 1, at), rec("rep", 1, at))
	o.apply(2, rec("rep", 2, at), end("end", 1)).is("rep@2 replaced | ended end@1, rep@1 | end@1 ended")
	o.sync(3, rec("rep", 2, at)).is("rep@2 unchanged | ended omit@1")
	o.apply(4, rec("omit", 1, at), rec("end", 1, at)).is("omit@1 scope_epoch_ended, end@1 scope_epoch_ended")
	o.apply(5, rec("rep", 1, at)).is("rep@1 scope_epoch_ended")
}

// expiry_deadline_reaches_only_declarers
func TestS2_TheDeadlineIsStampedForDeclarersOnlyAndDescribedToAll(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("owner").sync(1, rec("s", 1, expires(soon(60_000)), carriers("direct")))
	tool := s.module("tool", routertest.Declares("call-modes/v1"))
	s.module("util", routertest.Declares("flow-scopes/v1"))
	c.opens("tool", scope("owner", "s", 1)).stamped("owner/s@1 head expires authorized classic")
	c.opens("util", scope("owner", "s", 1)).stamped("owner/s@1 head authorized")
	tool.reads("owner", "s").is("live owner/s@1 head expires authorized")
}
