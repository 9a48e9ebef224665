package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// restart_owner_old_nonce_is_dead
func TestS3_AfterTheOwnersRestartItsOldNonceNeitherOpensNorSyncs(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, rec("a", 1))
	next := o.crash()
	c.refused("bad_consumer_identity", "tool", scope("owner", "a", 1), routertest.As(o.launch))
	stale := s.launched(o.launch)
	stale.sync(2).is("scope_sync_not_authority")
	stale.apply(2).is("scope_sync_not_authority")
	stale.leave()
	s.launched(next).sync(1, rec("a", 1)).is("a@1 unchanged")
	c.opens("tool", scope("owner", "a", 1), routertest.As(next))
}

// restart_router_starts_empty
func TestS6_AfterTheRoutersRestartNothingIsSyncedAndTheFirstSyncRestoresTheSameSession(t *testing.T) {
	s := play(t)
	o := s.module("owner")
	o.sync(50, rec("a", 3), rec("gone", 1))
	o.sync(51, rec("a", 3)).is("a@3 unchanged | ended gone@1")
	s.restartRouter()
	tool, c := s.module("tool"), s.client()
	tool.reads("owner", "a").is("not_live unsynced")
	c.refused("scope_not_synced", "tool", scope("owner", "a", 3))
	o = s.module("owner")
	o.apply(52, rec("a", 3)).is("scope_sync_required")
	o.sync(1, rec("a", 3), rec("gone", 1)).is("a@3 created, gone@1 created")
	c.opens("tool", scope("owner", "a", 3), s.as("owner")).stamped("owner/a@3 head authorized")
}

// restart_router_child_first, restart_router_parent_first
func TestS2_AfterTheRoutersRestartAChildLinksWhoeverSyncsFirst(t *testing.T) {
	for _, first := range []string{"kid", "owner"} {
		t.Run(first, func(t *testing.T) {
			s := play(t)
			p, a := rec("p", 1, children("kid")), rec("a", 1, parent("owner", "p", 1))
			s.module("owner").sync(1, p)
			s.module("kid").sync(1, a)
			s.restartRouter()
			if first == "owner" {
				s.module("owner").sync(1, p)
				s.module("kid").sync(1, a).is("a@1 created linked")
				return
			}
			k := s.module("kid")
			k.sync(1, a).is("a@1 created pending")
			s.module("owner").sync(1, p)
			k.reads("kid", "a").is("live kid/a@1 head under owner/p@1 linked")
		})
	}
}

// restart_router_refuses_a_passed_deadline
func TestS2_AFreshStoreRefusesAPassedDeadline(t *testing.T) {
	s := play(t)
	at := soon(1)
	s.module("owner").sync(1, rec("a", 1, expires(at)), rec("b", 1))
	s.restartRouter()
	s.module("owner").sync(1, rec("a", 1, expires(at)), rec("b", 1, expires(soon(60_000)))).is("a@1 scope_expired, b@1 created")
}

// swap begins a swap of m and registers its candidate, which is not ready.
func (m *module) swap(opts ...routertest.HelloOption) *module {
	m.s.t.Helper()
	l, err := m.s.router.Swap(m.ID)
	require.NoError(m.s.t, err)
	return m.s.launched(l, append(opts, routertest.NotReady())...)
}

// swap_candidate_never_takes_authority
func TestS3_ASwapCandidateNeverTakesAuthority(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	s.module("tool")
	o.sync(1, open1("a", 1))
	r := c.opens("tool", scope("owner", "a", 1))
	candidate := o.swap()
	candidate.sync(9).is("scope_sync_not_authority")
	candidate.apply(9).is("scope_sync_not_authority")
	candidate.reads("owner", "a").is("live owner/a@1 head authorized")
	o.sync(2, open1("a", 1), rec("b", 1)).is("a@1 unchanged, b@1 created")
	o.apply(3, rec("c", 1)).is("c@1 created")
	r.works()
}

// swap_promotion_is_lazy
func TestS11_AuthorityAcrossASwapIsLazy(t *testing.T) {
	s := play(t)
	o, c := s.module("owner"), s.client()
	tool := s.module("tool")
	o.sync(100, open1("a", 1), rec("b", 1))
	r := c.opens("tool", scope("owner", "a", 1))
	promoted := o.swap()
	promoted.Ready()
	o.dismissed()
	tool.reads("owner", "b").is("live owner/b@1 head authorized")
	o.sync(101).is("scope_sync_not_authority")
	o.apply(102).is("scope_sync_not_authority")
	promoted.apply(103, rec("z", 1)).is("scope_sync_required")
	promoted.sync(1, open1("a", 1)).is("a@1 unchanged | ended b@1")
	o.sync(104).is("scope_sync_not_authority")
	promoted.apply(2, rec("n", 1)).is("n@1 created")
	r.works()
}

// swap_of_the_target_changes_its_capabilities
func TestS4_AfterASwapBindsAreJudgedByThePromotedTargetsManifest(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("owner").sync(1, open1("f", 1, flow("x")), open1("p", 1))
	tool := s.module("tool", routertest.Declares(callModes))
	before := c.opens("tool", scope("owner", "f", 1))
	candidate := tool.swap(routertest.Declares())
	candidate.Serve()
	s.modules["tool"] = tool
	c.opens("tool", scope("owner", "f", 1)).stamped(`owner/f@1 head {"flow_id":"x"} authorized flow`)
	candidate.Ready()
	c.NextPush(wire.OpRouteClosing)
	c.NextPush(wire.OpRouteClosed)
	s.modules["tool"] = candidate
	c.refused(noFlow, "tool", scope("owner", "f", 1))
	c.opens("tool", scope("owner", "p", 1)).stamped("owner/p@1 head authorized").works()
	require.NotNil(t, before)
}

// restart_childs_owner
func TestS2_WhenTheChildsOwnerRestartsItsLinkAndRoutesStay(t *testing.T) {
	s := play(t)
	o, k, c := s.module("owner"), s.module("kid"), s.client()
	s.module("tool")
	o.sync(1, rec("p", 1, children("kid")), rec("q", 1, children("kid")))
	mine := []doc{open1("a", 1, parent("owner", "p", 1)), rec("b", 1, parent("owner", "q", 1))}
	k.sync(1, mine...)
	o.apply(2, end("q", 1))
	r := c.opens("tool", scope("kid", "a", 1))
	s.launched(k.crash()).sync(1, mine...).is("a@1 unchanged linked, b@1 unchanged ended")
	c.Quiet()
	r.works()
}
