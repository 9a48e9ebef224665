package scopewatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// going runs a call that waits and returns where its verdict comes.
func going(call func() Verdict) <-chan Verdict {
	c := make(chan Verdict, 1)
	go func() { c <- call() }()
	synctest.Wait()
	return c
}

func (f *fakeRouter) waiting(c <-chan Verdict) {
	f.t.Helper()
	synctest.Wait()
	select {
	case v := <-c:
		require.Fail(f.t, "it must wait", "%+v", v)
	default:
	}
}

func (f *fakeRouter) verdict(c <-chan Verdict) Verdict {
	f.t.Helper()
	synctest.Wait()
	select {
	case v := <-c:
		return v
	default:
		require.Fail(f.t, "it still waits")
		return Verdict{}
	}
}

// describes answers the scope.describe that was sent.
func (f *fakeRouter) describes(b Binding, answer doc) {
	f.t.Helper()
	synctest.Wait()
	corr, body := f.request(wire.OpScopeDescribe)
	require.Equal(f.t, b.Ref, body["ref"])
	f.deliver(wire.Response, corr, answer)
	synctest.Wait()
}

func notLive(synced, configured bool) doc {
	return doc{"status": "not_live", "daemon_incarnation": "i", "owner_synced": synced, "owner_configured": configured}
}

// unsynced makes a watcher that knows that nobody has synced.
func unsynced(t *testing.T, p Params) (*fakeRouter, uint64) {
	f := newFake(t, p)
	corr, _ := f.request(wire.OpScopeSubscribe)
	f.deliver(wire.StreamData, corr, snapshot(0, nil))
	return f, corr
}

func TestS5_ALiveCallWaitsAtMost45SecondsThenIsUnverifiable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := unsynced(t, Params{Bound: time.Hour})
		began := time.Now()
		c := going(func() Verdict { return f.w.Hold(context.Background(), bound) })
		f.describes(bound, notLive(false, true))
		pass(45*time.Second - 1)
		f.waiting(c)
		pass(1)
		require.Equal(t, Verdict{Case: NotSynced, Code: CodeUnverifiable}, f.verdict(c))
		require.Equal(t, MaxHold, time.Since(began))
		f.quiet() // asked once
	})
}

func TestS5_ALiveCallWaitsWithinItsCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := unsynced(t, Params{})
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		c := going(func() Verdict { return f.w.Hold(ctx, bound) })
		f.describes(bound, notLive(false, true))
		f.waiting(c)
		pass(3 * time.Second)
		require.Equal(t, CodeUnverifiable, f.verdict(c).Code)
		require.Empty(t, f.w.waiting, "nobody waits")
	})
}

func TestS5_AHeldCallGoesOnWhenItsOwnerSyncs(t *testing.T) {
	for _, c := range []struct {
		with []doc
		want Case
	}{
		{[]doc{stamp(owner, "s", 7)}, Live},
		{[]doc{stamp(owner, "s", 8)}, Replaced},
		{nil, Ended},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, corr := unsynced(t, Params{})
			held := going(func() Verdict { return f.w.Hold(context.Background(), bound) })
			f.describes(bound, notLive(false, true))
			f.deliver(wire.StreamData, corr, firstSync(1, other, stamp(other, "s", 7)))
			f.waiting(held)
			f.deliver(wire.StreamData, corr, firstSync(2, owner, c.with...))
			v := f.verdict(held)
			require.Equal(t, c.want.String(), v.Case.String())
			require.Equal(t, c.want == Live, v.May())
			require.Equal(t, c.want == Live, v.Scope != nil)
			require.Equal(t, c.want != Live, v.Code == CodeEnded)
		})
	}
}

func TestS5_AnOwnerThatIsNotConfiguredNeverSyncsRefuseTheAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := unsynced(t, Params{})
		c := going(func() Verdict { return f.w.Hold(context.Background(), bound) })
		f.describes(bound, notLive(false, false))
		v := f.verdict(c)
		require.Equal(t, Verdict{Case: NotConfigured, Code: CodeNotLive}, v)
		require.False(t, v.May() || v.Dead() || v.Held(), "the action is refused and the binding kept")
	})
}

func TestS5_AStoredBindingNeverWaitsForItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, corr := unsynced(t, Params{})
		began := time.Now()
		c := going(func() Verdict { return f.w.Decide(context.Background(), bound) })
		f.describes(bound, notLive(false, true))
		v := f.verdict(c)
		require.Equal(t, Verdict{Case: NotSynced}, v)
		require.True(t, v.Held() && !v.May() && !v.Dead(), "kept, not refused")
		c = going(func() Verdict { return f.w.Decide(context.Background(), bound) })
		f.describes(bound, notLive(false, false))
		v = f.verdict(c)
		require.True(t, !v.Dead() && !v.May(), "kept in case 5 too")
		f.deliver(wire.StreamData, corr, firstSync(1, owner, stamp(owner, "s", 7)))
		require.True(t, f.w.Decide(context.Background(), bound).May(), "only after a later read answers case 1")
		f.deliver(wire.StreamData, corr, happened(2, "ended", owner, "s", 7))
		require.True(t, f.w.Decide(context.Background(), bound).Dead())
		f.deliver(wire.StreamData, corr, happened(3, "created", owner, "s", 8))
		require.True(t, f.w.Decide(context.Background(), bound).Dead())
		f.quiet()
		require.Zero(t, time.Since(began))
	})
}

func TestDescribeThatIsNotAnsweredHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := unsynced(t, Params{})
		c := going(func() Verdict { return f.w.Decide(context.Background(), bound) })
		f.request(wire.OpScopeDescribe)
		pass(answerTimeout)
		require.True(t, f.verdict(c).Held())
		c = going(func() Verdict { return f.w.Decide(context.Background(), bound) })
		corr, _ := f.request(wire.OpScopeDescribe) // nobody joins one that is late
		f.deliver(wire.Error, corr, refusal("not_registered"))
		require.True(t, f.verdict(c).Held())
		c = going(func() Verdict { return f.w.Decide(context.Background(), bound) })
		f.w.Lost()
		require.True(t, f.verdict(c).Held())
		require.Empty(t, f.w.asks)
		require.Empty(t, f.w.byKey)
	})
}

func TestQuestionsOfOneKeyAreOneScopeDescribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := unsynced(t, Params{})
		first := going(func() Verdict { return f.w.Decide(context.Background(), bound) })
		second := going(func() Verdict { return f.w.Decide(context.Background(), Binding{owner, "s", 8}) })
		corr, _ := f.request(wire.OpScopeDescribe)
		f.quiet()
		f.deliver(wire.Response, corr, doc{"status": "live", "scope_epoch": 8, "owner_synced": true, "owner_configured": true, "scope": stamp(owner, "s", 8)})
		require.Equal(t, Replaced, f.verdict(first).Case)
		require.Equal(t, Live, f.verdict(second).Case)
	})
}

func TestS8_ARouterWithoutScopeSubscribeIsAskedScopeDescribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRouter{t: t, w: New(Params{Interval: time.Minute})}
		f.w.Follow(f, []string{wire.OpScopeDescribe})
		f.quiet()
		for _, c := range []struct {
			answer doc
			want   Case
		}{
			{doc{"status": "live", "scope_epoch": 7, "owner_synced": true, "owner_configured": true, "scope": stamp(owner, "s", 7)}, Live},
			{doc{"status": "live", "scope_epoch": 8, "owner_synced": true, "owner_configured": true, "scope": stamp(owner, "s", 8)}, Replaced},
			{doc{"status": "ended", "scope_epoch": 7, "owner_synced": true, "owner_configured": true}, Ended},
			{notLive(true, true), Ended},
			{notLive(true, false), Ended},
			{notLive(false, true), NotSynced},
			{notLive(false, false), NotConfigured},
		} {
			d := going(func() Verdict { return f.w.Decide(context.Background(), bound) })
			f.describes(bound, c.answer)
			require.Equal(t, c.want.String(), f.verdict(d).Case.String())
		}
		work := going(func() Verdict { return f.w.Ended(context.Background(), bound) })
		for range 3 { // once per running task per interval
			f.describes(bound, notLive(false, true))
			f.quiet()
			pass(time.Minute - 1)
			f.waiting(work)
			f.quiet()
			pass(1)
			synctest.Wait()
		}
		f.describes(bound, notLive(true, true))
		require.True(t, f.verdict(work).Dead())
	})
}

func TestS7_WorkEndsOnADefinitiveAnswerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, Params{})
		corr, _ := f.request(wire.OpScopeSubscribe)
		f.deliver(wire.StreamData, corr, snapshot(3, []Principal{owner}, stamp(owner, "s", 7)))
		work := going(func() Verdict { return f.w.Ended(context.Background(), bound) })
		f.deliver(wire.StreamData, corr, happened(4, "changed", owner, "s", 7))
		f.waiting(work) // a carrier removed or delegates turned off leaves the scope live
		f.w.Lost()
		f.waiting(work) // the router is gone: nothing is known
		f.w.Follow(f, []string{wire.OpScopeSubscribe})
		synctest.Wait()
		corr, _ = f.request(wire.OpScopeSubscribe)
		f.describes(bound, notLive(false, true))
		f.deliver(wire.StreamData, corr, snapshot(0, nil))
		f.waiting(work) // not_synced, as after a restart, holds and ends nothing
		pass(time.Hour)
		f.waiting(work)
		f.deliver(wire.StreamData, corr, firstSync(1, owner))
		require.Equal(t, Verdict{Case: Ended, Code: CodeEnded}, f.verdict(work))
	})
}

func TestAWatcherOfSomeOwnersAsksForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, Params{Owners: []Principal{owner}, Interval: time.Second})
		corr, body := f.request(wire.OpScopeSubscribe)
		require.Equal(t, []any{doc{"kind": "reserved", "module_id": "owner"}}, body["owners"])
		f.deliver(wire.StreamData, corr, snapshot(0, []Principal{owner}))
		require.True(t, f.w.Decide(context.Background(), bound).Dead())
		theirs := Binding{other, "s", 7}
		c := going(func() Verdict { return f.w.Hold(context.Background(), theirs) })
		f.describes(theirs, notLive(false, true))
		pass(time.Second)
		f.describes(theirs, notLive(true, true))
		require.True(t, f.verdict(c).Dead())
	})
}
