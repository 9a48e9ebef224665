package scenario

import (
	"testing"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// sync_first_generation_is_any
func TestS3_TheFirstSyncTakesAuthorityAtAnyGeneration(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1000, rec("a", 1)).is("a@1 created")
	o.sync(1000, rec("b", 1)).is("scope_sync_stale")
	o.sync(999, rec("b", 1)).is("scope_sync_stale")
	o.reads("owner", "b").is("not_live")
	o.sync(1001, rec("a", 1), rec("b", 1)).is("a@1 unchanged, b@1 created")
}

// sync_stale_changes_nothing
func TestS3_AStaleGenerationChangesNothing(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(5, rec("a", 1, agent("x")))
	r := c.opens("tool", scope("owner", "a", 1), s.as("owner"))
	o.sync(5).is("scope_sync_stale")
	o.sync(4, rec("a", 1, agent("y"))).is("scope_sync_stale")
	o.apply(5, end("a", 1)).is("scope_sync_stale")
	o.apply(0, rec("a", 2)).is("scope_sync_stale")
	c.Quiet()
	r.works()
	o.sync(6, rec("a", 1, agent("x"))).is("a@1 unchanged")
}

// sync_tombstoned_epoch
func TestS3_ATombstonedEpochIsRefusedALowerOneTooAHigherIsCreated(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1, rec("a", 5))
	o.sync(2).is("ended a@5")
	o.sync(3, rec("a", 5)).is("a@5 scope_epoch_ended")
	o.sync(4, rec("a", 4)).is("a@4 scope_epoch_regressed")
	o.sync(5, rec("a", 6)).is("a@6 created")
}

// sync_refused_record_keeps_state
func TestS3_ARefusedRecordKeepsItsStateWhileTheRestApplies(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, rec("a", 3, agent("x")), rec("b", 1))
	r := c.opens("tool", scope("owner", "a", 3), s.as("owner"))
	o.sync(2, rec("a", 2), rec("b", 1, agent("new")), rec("c", 1)).is("a@2 scope_epoch_regressed, b@1 updated, c@1 created")
	o.sync(3, rec("a", 3, kind("worker")), rec("b", 1, agent("new"))).is("a@3 scope_kind_changed, b@1 unchanged | ended c@1")
	o.reads("owner", "a").is(`live owner/a@3 head {"agent_id":"x"} authorized`)
	r.works()
}

// authority_released_on_close
func TestS3_AClosedAuthorityIsTakenByTheNextFullSyncAndNeverByAnApply(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	tool := s.module("tool")
	o.sync(50, rec("a", 1, carriers("direct")), rec("b", 1))
	r := c.opens("tool", scope("owner", "a", 1))
	o.leave()
	tool.reads("owner", "a").is("live owner/a@1 head authorized")
	r.works()
	o = s.launched(o.launch)
	o.apply(51, rec("c", 1)).is("scope_sync_required")
	o.sync(2, rec("a", 1, carriers("direct"))).is("a@1 unchanged | ended b@1")
	o.apply(2).is("scope_sync_stale")
	o.apply(3, rec("c", 1)).is("c@1 created")
	r.works()
}

// second_hello_on_one_connection
func TestS3_ASecondHelloIsRefusedAndChangesNothing(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	o.sync(1, rec("a", 1))
	for _, id := range []string{"owner", "tool"} {
		o.Start(wire.Hello, wire.ControlChannel, 0, doc{"protocol_ver": 2, "launch_nonce": o.launch.Nonce,
			"manifest": doc{"module_id": id, "module_version": "1", "protocol_ver": 2, "provides": []any{}}}).Wait().Refused("invalid_hello")
	}
	again := routertest.DialModule(t, s.front)
	again.StartHello("owner", routertest.Nonce(o.launch)).Wait().Refused("duplicate_module_id")
	again.Sync(2).Refused("not_registered")
	o.apply(2, rec("b", 1)).is("b@1 created")
}

// apply_body_refusals
func TestS3_AnApplysBodyIsRefusedWholeAndByName(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1, rec("a", 1))
	o.apply(2, rec("", 1)).is("invalid_control_body").naming("ref")
	o.apply(2, rec("dup", 1), rec("dup", 2)).is("invalid_control_body").naming("dup")
	o.apply(2, end("a", 1), end("a", 2)).is("invalid_control_body").naming("a")
	o.apply(2, rec("both", 1), end("both", 1)).is("invalid_control_body").naming("both")
	o.apply(2, rec("new", 1), rec("bad", 1, flow("has space")), end("a", 1)).is("invalid_control_body").naming("flow_id")
	o.reads("owner", "new").is("not_live")
	o.apply(2, end("a", 2), end("a-typo", 1), end("a", 1)).is("invalid_control_body")
	o.apply(2, end("a-typo", 1), end("a", 1)).is("ended a@1 | a-typo@1 not_live, a@1 ended")
}

// apply_upsert_outcomes
func TestS3_AnUpsertIsCreatedReplacedUpdatedUnchangedOrRefused(t *testing.T) {
	o := play(t).module("owner")
	o.sync(1, rec("rep", 1), rec("upd", 1), rec("same", 1), rec("low", 5))
	o.apply(2, rec("new", 1), rec("rep", 2), rec("upd", 1, agent("x")), rec("same", 1), rec("low", 4), rec("del", 1, delegates)).
		is("new@1 created, rep@2 replaced, upd@1 updated, same@1 unchanged, low@4 scope_epoch_regressed, del@1 scope_delegates_without_agent | ended rep@1")
	o.apply(3, rec("new", 1, kind("worker")), rec("rep", 1)).is("new@1 scope_kind_changed, rep@1 scope_epoch_ended")
}
