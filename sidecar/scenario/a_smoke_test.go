package scenario

import (
	"testing"

	"scopeward/proxy/routertest"
)

// smoke_owner_opens_its_scope
func TestS3_AnOwnerRegistersAScopeAndARouteUnderItIsStampedUntilItEnds(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	tool := s.module("tool", routertest.Declares("call-modes/v1"))
	o.sync(1, rec("s", 1, agent("ag"), carriers("direct"))).is("s@1 created")
	r := c.opens("tool", scope("owner", "s", 1), s.as("owner"))
	r.stamped(`owner/s@1 head {"agent_id":"ag"} authorized classic`).works()
	free := c.opens("tool").stamped("unscoped classic")
	o.sync(2).is("ended s@1")
	c.drained(closed("scope_ended", r))
	tool.reads("owner", "s").is("ended @1")
	free.works()
}
