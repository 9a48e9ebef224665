package scopewatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/scopewatch"
	"scopeward/proxy/wire"
)

// A routertest.Module's connection is one that a watcher can use.
var _ scopewatch.Conn = (*routertest.Module)(nil)

// onBoth runs a test with what the feed tells and with scope.describe alone.
func onBoth(t *testing.T, test func(t *testing.T, s *stage, w *scopewatch.Watcher)) {
	for name, p := range map[string]scopewatch.Params{
		"feed":     {},
		"describe": {Owners: []scopewatch.Principal{scopewatch.Module("nobody")}, Interval: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			test(t, s, s.provider(p))
		})
	}
}

func bound(owner, ref string, epoch uint64) scopewatch.Binding {
	return scopewatch.Binding{Owner: scopewatch.Module(owner), Ref: ref, Epoch: epoch}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), routertest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func TestS5_Case1_LiveWithTheSameEpochUseIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		s.module(core).Sync(1, head("s", 7)).OK()
		v := w.Hold(within(t), bound(core, "s", 7))
		require.True(t, v.May())
		require.Contains(t, string(v.Scope), `"ref":"s","scope_epoch":7`)
		require.True(t, w.Decide(within(t), bound(core, "s", 7)).May())
	})
}

func TestS5_Case2_LiveWithADifferentEpochIsANewSessionUnderAReusedRef(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		s.module(core).Sync(1, head("s", 7)).OK()
		v := w.Hold(within(t), bound(core, "s", 6))
		require.Equal(t, scopewatch.Verdict{Case: scopewatch.Replaced, Code: "scope_ended"}, v)
		require.True(t, v.Dead())
		require.Equal(t, v, w.Ended(within(t), bound(core, "s", 6)))
	})
}

func TestS5_Case3_EndedOrNotInTheOwnersSetTheBindingIsDead(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		o := s.module(core)
		o.Sync(1, head("s", 7)).OK()
		require.True(t, w.Hold(within(t), bound(core, "s", 7)).May())
		o.Sync(2).OK()
		for _, ref := range []string{"s", "never registered"} {
			v := w.Ended(within(t), bound(core, ref, 7))
			require.Equal(t, scopewatch.Verdict{Case: scopewatch.Ended, Code: "scope_ended"}, v)
			// scope.describe may have said so while the feed still tells of the first sync.
			until(t, func() bool { return w.Decide(within(t), bound(core, ref, 7)).Dead() })
		}
	})
}

func TestS5_Case4_OfAConfiguredOwnerThatHasNotSyncedIsHeld(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		o := s.module(core)
		require.True(t, w.Decide(within(t), bound(core, "s", 7)).Held())
		call := make(chan scopewatch.Verdict, 1)
		go func() { call <- w.Hold(within(t), bound(core, "s", 7)) }()
		o.Sync(1, head("s", 7)).OK()
		require.True(t, (<-call).May(), "the call waited for it")
	})
}

func TestS5_Case5_OfAnOwnerThatIsNotConfiguredIsRefusedAndKept(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		until(t, func() bool { return w.Decide(within(t), bound(stranger, "s", 7)).Case == scopewatch.NotConfigured })
		v := w.Hold(within(t), bound(stranger, "s", 7))
		require.Equal(t, scopewatch.Verdict{Case: scopewatch.NotConfigured, Code: "scope_not_live"}, v)
		require.False(t, v.Dead())
	})
}

func TestS6_AfterARestartReadersHoldUntilTheOwnerSyncs(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		s.module(core).Sync(1, head("s", 7), head("t", 1)).OK()
		require.True(t, w.Hold(within(t), bound(core, "s", 7)).May())
		s.restart()
		until(t, func() bool { return w.Decide(within(t), bound(core, "s", 7)).Held() })
		s.module(core).Sync(1, head("s", 7)).OK()
		require.True(t, w.Hold(within(t), bound(core, "s", 7)).May(), "the same epoch is the same session")
		require.True(t, w.Ended(within(t), bound(core, "t", 1)).Dead(), "what was not sent again has ended")
	})
}

func TestS7_ARoutesCloseAloneEndsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage, w *scopewatch.Watcher) {
		o := s.module(core)
		o.Sync(1, head("s", 7)).OK()
		require.True(t, w.Hold(within(t), bound(core, "s", 7)).May())
		c := routertest.Dial(t, s.file)
		c.Open(tool, routertest.Scope(routertest.Selector(core, "s", 7)))
		work := make(chan scopewatch.Verdict, 1)
		go func() { work <- w.Ended(within(t), bound(core, "s", 7)) }()
		c.Close()
		require.Equal(t, wire.Goodbye, (<-s.goodbyes).Type)
		require.True(t, w.Decide(within(t), bound(core, "s", 7)).May())
		select {
		case v := <-work:
			require.Fail(t, "the close ended it", "%+v", v)
		default:
		}
		o.Sync(2).OK()
		require.True(t, (<-work).Dead())
	})
}

// A provider whose SDK hands it frames one by one needs no goroutine.
func TestAWatcherOverAnotherConnectionIsShownItsFrames(t *testing.T) {
	s := newStage(t)
	s.module(core).Sync(1, head("s", 7)).OK()
	m := routertest.DialModule(t, s.file)
	var ack struct {
		Ops []string `json:"subc_ops"`
	}
	m.Hello(tool, routertest.Nonce(s.router.Launch(tool))).Into(&ack)
	w := scopewatch.New(scopewatch.Params{})
	w.Follow(m, ack.Ops)
	require.True(t, w.Take(m.Next()))
	require.True(t, w.Decide(within(t), bound(core, "s", 7)).May())
	require.True(t, w.Decide(within(t), bound(core, "t", 7)).Dead())
}

func TestRunEndsWhenItsHelloIsRefused(t *testing.T) {
	s := newStage(t)
	bad := s.hello(tool)
	delete(bad, "manifest")
	err := scopewatch.Run(within(t), scopewatch.RunParams{Path: s.file, Hello: bad, Watcher: scopewatch.New(scopewatch.Params{})})
	var refused *scopewatch.RefusedError
	require.ErrorAs(t, err, &refused)
	require.NotContains(t, err.Error(), bad["launch_nonce"])
}
