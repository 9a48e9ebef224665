package scenario

import (
	"testing"

	"scopeward/proxy/routertest"
)

// describe_five_cases
func TestS5_DescribeSeparatesTheFiveReaderCases(t *testing.T) {
	s := play(t)
	tool := s.module("tool")
	tool.reads("owner", "s").is("not_live unsynced")
	tool.reads("nobody", "s").is("not_live unsynced unconfigured")
	o := s.module("owner")
	o.sync(1, rec("s", 1))
	tool.reads("owner", "s").is("live owner/s@1 head authorized")
	o.sync(2, rec("s", 2))
	tool.reads("owner", "s").is("live owner/s@2 head authorized")
	tool.reads("owner", "never").is("not_live")
	o.sync(3)
	tool.reads("owner", "s").is("ended @2")
}

// describe_ended_reports_latest_epoch
func TestS5_OfSeveralEndedEpochsDescribeAnswersTheLatest(t *testing.T) {
	o := play(t).module("owner")
	for generation, epoch := range []uint64{1, 4, 9} {
		o.sync(uint64(generation), rec("s", epoch))
	}
	o.sync(3)
	o.reads("owner", "s").is("ended @9")
}

// describe_by_any_registered_module
func TestS5_AnyRegisteredModuleReadsAnyScope(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	tool := s.module("tool", routertest.Roles())
	ghost := routertest.DialModule(t, s.front) // neither configured nor launched
	ghost.Hello("ghost")
	o.sync(1, rec("s", 1, agent("a"), run("r"), expires(soon(60_000))))
	const want = `live owner/s@1 head {"agent_id":"a","run_id":"r"} expires authorized`
	o.reads("owner", "s").is(want)
	tool.reads("owner", "s").is(want)
	s.said(ghost.Describe("owner", "s")).is(want)
	ghost.Sync(1).Refused("scope_sync_not_authority")
}

// describe_parent_states
func TestS5_DescribeReportsTheParentAndItsState(t *testing.T) {
	s := play(t)
	k := s.module("kid")
	k.sync(1, rec("a", 1, parent("owner", "p", 1)), rec("n", 1))
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 pending")
	k.reads("kid", "n").is("live kid/n@1 head")
	o := s.module("owner")
	o.sync(1, rec("p", 1, children("kid")))
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 linked")
	o.sync(2)
	k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 ended")
}

// describe_refused_sync_does_not_mark_synced
func TestS5_ASyncRefusedWholeLeavesItsOwnerUnsynced(t *testing.T) {
	s := play(t)
	o, tool, c := s.module("owner"), s.module("tool"), s.client()
	o.sync(1, rec("a", 1), rec("a", 1)).is("invalid_control_body")
	tool.reads("owner", "a").is("not_live unsynced")
	c.refused("scope_not_synced", "tool", scope("owner", "a", 1))
	o.sync(1)
	c.refused("scope_not_live", "tool", scope("owner", "a", 1))
}
