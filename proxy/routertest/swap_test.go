package routertest

import (
	"testing"
	"testing/synctest"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

func newSwapRig(t *testing.T) (*rig, *Module, Launch) {
	d := 800 * time.Millisecond
	r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool", OverlapSafe: true, Reserved: true, DrainTimeout: &d}, {ID: "plain"}}})
	m, l := r.launched("tool")
	m.Serve()
	r.module("other").Serve()
	return r, m, l
}

func TestQ3_Swap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m, l := newSwapRig(t)
		c, op := r.client(), r.client()
		feed := subscribe(op, nil)
		op.Settle()
		rt := c.Open("tool")
		m.NextBind()

		swapper := r.client()
		swap := swapper.Start(wire.Request, 0, 0, Doc{"op": "supervisor.swap", "module_id": "tool", "ready_timeout_ms": 8000})
		later := swapper.Start(wire.Request, 0, 0, Doc{"op": "server.describe"})
		next := r.after(l)
		require.True(t, next.Candidate)
		c.Open("other", As(l))
		c.Open("other", As(next)) // before its Hello

		cand := DialModulePipe(t, r.Router)
		cand.Hello("tool", Nonce(next), NotReady())
		cand.Serve()
		// Binds go to the incumbent, and nothing shows the candidate.
		second := c.Open("tool")
		m.NextBind()
		cand.NoBind()
		op.Quiet()
		require.Equal(t, l.PID, snapshot(op).Live[0].PID)
		require.EqualValues(t, 1, r.list(op)["tool"].Generation)
		third := DialModulePipe(t, r.Router)
		third.StartHello("tool", Nonce(l)).Wait().Refused("duplicate_module_id")
		third.StartHello("tool", Nonce(next)).Wait().Refused("swap_token_invalid")
		third.StartHello("tool", Nonce(Launch{Nonce: "x"})).Wait().Refused("swap_token_invalid")
		third.StartHello("tool").Wait().Refused("swap_token_invalid")
		op.Ask(Doc{"op": "supervisor.swap", "module_id": "tool"}).Refused("swap_refused")
		op.Ask(Doc{"op": "supervisor.restart", "module_id": "tool"}).Refused("swap_in_progress")
		require.False(t, swap.Answered())
		require.False(t, later.Answered(), "a swap holds its connection's later requests")

		// Cutover.
		cand.Ready()
		requireBody(t, `{"op":"supervisor.ack","module_id":"tool","applied":true}`, swap.Wait().Frame)
		later.Wait().OK()
		e := nextEvent(t, op, feed.Corr)
		require.Equal(t, spawnEvent{Cursor: e.Cursor, Kind: "spawned", ModuleID: "tool", Generation: 2, PID: next.PID}, e)
		require.Equal(t, next.PID, snapshot(op).Live[0].PID)
		require.EqualValues(t, 2, r.list(op)["tool"].Generation)
		requireBody(t, `{"op":"route.closing","module_id":"tool","reason":"restart"}`, c.NextPush("route.closing").Frame)
		requireBody(t, `{"op":"route.closed","module_id":"tool","reason":"restart","drained":true,"abandoned":0,"excluded_subscriptions":0,"terminal":false}`,
			c.NextPush("route.closed").Frame)
		c.NextGoodbyes(rt, second)
		m.NextPush("module.draining")
		m.NextGoodbye(0, 0)
		m.Quiet()
		cand.Quiet()
		c.Open("tool")
		cand.NextBind()

		// The incumbent's nonce is good until its connection has closed.
		c.Open("other", As(l))
		r.Exit(l, 0)
		e = nextEvent(t, op, feed.Corr)
		require.Equal(t, "exited", e.Kind)
		require.EqualValues(t, 1, e.Generation)
		c.Open("other", As(l))
		m.Close()
		synctest.Wait()
		c.OpenRefused("bad_consumer_identity", "other", As(l))
		c.Open("other", As(next))
		require.Equal(t, listed{ModuleID: "tool", State: "running", Enabled: true, Live: true, Generation: 2, Code: ptr(0), Kind: "clean"}, r.list(op)["tool"])
	})
}

func TestQ3_ReadyAtOnceCutsOverAtHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m, l := newSwapRig(t)
		next, err := r.SwapAs("tool", 4712)
		require.NoError(t, err)
		require.EqualValues(t, 4712, next.PID)
		o := r.client().StartOpen("tool")
		m.NextBind()
		o.Route()
		held := func() *Opening { m.mu.Lock(); m.serving = false; m.mu.Unlock(); return r.client().StartOpen("tool") }()
		b := m.NextBind()
		cand := r.module("tool", Nonce(next)).Serve()
		// A bind that the incumbent still holds comes to nothing.
		held.Wait().Refused("module_reloading")
		m.NextPush("module.draining")
		b.NextGoodbye()
		b.Ack()
		m.NextGoodbye(0, 0)
		m.Quiet()
		c := r.client()
		c.Open("tool")
		cand.NextBind()
		m.Close()
		synctest.Wait()
		r.Exit(l, 0)
		c.OpenRefused("bad_consumer_identity", "other", As(l))
	})
}

func TestQ3_TheIncumbentIsKilledWhenItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m, l := newSwapRig(t)
		op := r.client()
		feed := subscribe(op, nil)
		op.Settle()
		next, err := r.Swap("tool")
		require.NoError(t, err)
		r.module("tool", Nonce(next))
		require.Equal(t, "spawned", nextEvent(t, op, feed.Corr).Kind)
		e := nextEvent(t, op, feed.Corr)
		require.Equal(t, "exited", e.Kind)
		require.EqualValues(t, 9, *e.ExitSignal)
		require.Equal(t, l.PID, e.PID)
		// Its connection is still there: the swap ends without it.
		op.Open("other", As(l))
		elapse(releaseTimeout + time.Millisecond)
		op.OpenRefused("bad_consumer_identity", "other", As(l))
		m.Settle()
	})
}

func TestQ3_CandidateThatNeverGetsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m, l := newSwapRig(t)
		op := r.client()
		swap := op.Start(wire.Request, 0, 0, Doc{"op": "supervisor.swap", "module_id": "tool", "ready_timeout_ms": 900})
		next := r.after(l)
		cand := r.module("tool", Nonce(next), NotReady())
		elapse(900 * time.Millisecond)
		// Cut off without a frame, its process first.
		cand.Ended()
		require.Empty(t, cand.inbox)
		require.JSONEq(t, `{"arm":"never_ready","candidate_exit_code":null,"candidate_exit_signal":null}`,
			string(swap.Wait().Refused("swap_failed").Member("detail")))
		c := r.client()
		require.Equal(t, "x", c.Open("tool").Call("x"))
		m.NextBind()
		c.OpenRefused("bad_consumer_identity", "other", As(next))
		require.EqualValues(t, 1, r.list(c)["tool"].Generation)
	})
}

func TestQ3_CandidateThatNeverComesOrDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, l := newSwapRig(t)
		op := r.client()
		ask := func() *Call {
			return op.Start(wire.Request, 0, 0, Doc{"op": "supervisor.swap", "module_id": "tool", "ready_timeout_ms": 900})
		}
		require.Contains(t, string(ask().Wait().Refused("swap_failed").Member("detail")), "never_registered")
		swap := ask()
		r.Exit(r.after(l), 3)
		require.JSONEq(t, `{"arm":"candidate_exited","candidate_exit_code":3,"candidate_exit_signal":null}`,
			string(swap.Wait().Refused("swap_failed").Member("detail")))
		op.Ask(Doc{"op": "supervisor.swap", "module_id": "plain"}).Refused("swap_refused")
		op.Ask(Doc{"op": "supervisor.swap", "module_id": "zz"}).Refused("unknown_module")
	})
}

func TestIncumbentThatDiesHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m, l := newSwapRig(t)
		next, err := r.Swap("tool")
		require.NoError(t, err)
		cand := r.module("tool", Nonce(next), NotReady())
		r.Crash(l, 9)
		m.Close()
		synctest.Wait()
		c := r.client()
		c.OpenRefused("module_warming", "tool")
		cand.Ready()
		cand.Serve()
		c.Open("tool")
		require.Equal(t, "running", r.list(c)["tool"].State)
	})
}
