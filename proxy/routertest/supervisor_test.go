package routertest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

type listed struct {
	ModuleID   string `json:"module_id"`
	State      string `json:"state"`
	Enabled    bool   `json:"enabled"`
	Live       bool   `json:"live"`
	Generation uint64 `json:"spawn_generation"`
	Code       *int   `json:"last_exit_code"`
	Signal     *int   `json:"last_exit_signal"`
	Kind       string `json:"last_exit_kind"`
}

func (r *rig) list(c *Client) map[string]listed {
	r.t.Helper()
	var body struct {
		Modules []listed `json:"modules"`
	}
	c.Ask(Doc{"op": "supervisor.list"}).OK().Into(&body)
	out := map[string]listed{}
	for _, m := range body.Modules {
		out[m.ModuleID] = m
	}
	return out
}

func nextEvent(t *testing.T, c *Client, corr uint64) spawnEvent {
	t.Helper()
	f := c.Next()
	require.Equal(t, wire.StreamData, f.Type)
	require.Equal(t, corr, f.Corr)
	require.Zero(t, f.Flags)
	require.Zero(t, f.Channel)
	var e spawnEvent
	Reply{c.Peer, f}.Into(&e)
	return e
}

func subscribe(c *Client, since any) *Call {
	return c.Start(wire.Request, 0, 0, Doc{"op": "supervisor.spawn_subscribe", "since": since})
}

func snapshot(c *Client) (s snapshotBody) {
	c.Ask(Doc{"op": "supervisor.spawn_snapshot"}).OK().Into(&s)
	return s
}

// after waits for the next launch of id.
func (r *rig) after(l Launch) Launch {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), Patience)
	defer cancel()
	next, err := r.AwaitLaunch(ctx, l.ModuleID, l)
	require.NoError(r.t, err)
	return next
}

func TestQ4_ListShowsTheConfiguredAndSnapshotTheLive(t *testing.T) {
	r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool"}, {ID: "off", Disabled: true}}})
	l := r.LaunchAs("tool", 4711)
	require.Equal(t, Launch{ModuleID: "tool", Nonce: l.Nonce, PID: 4711, Generation: 1}, l)
	require.Len(t, l.Nonce, 64)
	require.Equal(t, l, r.Launch("tool"), "it lives")
	r.module("stranger")
	c := r.client()
	list := r.list(c)
	require.Len(t, list, 2)
	require.Equal(t, listed{ModuleID: "off", State: "disabled"}, list["off"])
	require.Equal(t, listed{ModuleID: "tool", State: "running", Enabled: true, Live: true, Generation: 1}, list["tool"])
	s := snapshot(c)
	require.Equal(t, SpawnRing, s.RingBound)
	require.Len(t, s.Cursor.DaemonIncarnation, 32)
	require.Len(t, s.Live, 1)
	require.EqualValues(t, 4711, s.Live[0].PID)
	require.NotZero(t, s.Live[0].SpawnedAtMS)
}

func TestRescan_AChangedCommandIsTheNextLaunchs(t *testing.T) {
	modules := []ModuleConfig{{ID: "same"}, {ID: "tool", Program: "/bin/old"}}
	now := append([]ModuleConfig{}, modules...)
	r := newTestRig(t, Config{Modules: modules, Rescan: func() ([]ModuleConfig, error) { return now, nil }})
	r.Launch("tool")
	now[1].Program = "/bin/new"
	var got rescanBody
	r.client().Ask(Doc{"op": "supervisor.rescan"}).Into(&got)
	require.Equal(t, rescanBody{Op: "supervisor.rescan", Added: []string{}, Removed: []string{}, Changed: []string{"tool"}, Unchanged: 1}, got)
	r.client().Ask(Doc{"op": "supervisor.rescan"}).Into(&got)
	require.EqualValues(t, 2, got.Unchanged)

	newTestRig(t, Config{}).client().Ask(Doc{"op": "supervisor.rescan"}).Refused("rescan_unavailable")
}

func TestQ4_FeedFollowsCrashExitAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool"}}})
		l := r.Launch("tool")
		c := r.client()
		sub := subscribe(c, nil)
		c.Quiet() // no reply to the request itself

		r.Crash(l, 9)
		e := nextEvent(t, c, sub.Corr)
		require.Equal(t, "exited", e.Kind)
		require.EqualValues(t, 9, *e.ExitSignal)
		require.Nil(t, e.ExitCode)
		require.Equal(t, l.PID, e.PID)
		next := r.after(l)
		require.NotEqual(t, l.Nonce, next.Nonce)
		e = nextEvent(t, c, sub.Corr)
		require.Equal(t, spawnEvent{Cursor: e.Cursor, Kind: "spawned", ModuleID: "tool", Generation: 2, PID: next.PID}, e)
		require.EqualValues(t, 3, e.Cursor.Seq)

		require.NoError(t, r.Restart("tool"))
		e = nextEvent(t, c, sub.Corr)
		require.Equal(t, "exited", e.Kind)
		require.EqualValues(t, 0, *e.ExitCode)
		last := r.after(next)
		require.Equal(t, "spawned", nextEvent(t, c, sub.Corr).Kind)

		r.Exit(last, 0)
		require.Equal(t, "exited", nextEvent(t, c, sub.Corr).Kind)
		elapse(time.Minute)
		c.Quiet()
		got := r.list(c)["tool"]
		require.Equal(t, "stopped", got.State, "a clean exit is left alone")
		require.Equal(t, "clean", got.Kind)
		require.Equal(t, 0, *got.Code)

		c.Send(wire.Header{Type: wire.Cancel, Corr: sub.Corr}, nil)
		f := c.Next()
		require.Equal(t, wire.StreamEnd, f.Type)
		require.Equal(t, sub.Corr, f.Corr)
		c.Ask(Doc{"op": "supervisor.restart", "module_id": "tool"}).OK()
		r.after(last)
		c.Quiet()
	})
}

func TestQ4_Cursors(t *testing.T) {
	r := newTestRig(t, Config{SpawnRing: 3})
	c := r.client()
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		r.Launch(id)
	}
	now := snapshot(c).Cursor
	require.EqualValues(t, 5, now.Seq)
	at := func(seq uint64) Doc { return Doc{"daemon_incarnation": now.DaemonIncarnation, "seq": seq} }
	sub := subscribe(c, at(3))
	require.Equal(t, "d", nextEvent(t, c, sub.Corr).ModuleID)
	require.Equal(t, "e", nextEvent(t, c, sub.Corr).ModuleID)
	sub = subscribe(c, at(2))
	require.Equal(t, "c", nextEvent(t, c, sub.Corr).ModuleID)
	nextEvent(t, c, sub.Corr)
	nextEvent(t, c, sub.Corr)
	require.JSONEq(t, `{"oldest_retained_cursor":{"daemon_incarnation":"`+now.DaemonIncarnation+`","seq":3}}`,
		string(subscribe(c, at(1)).Wait().Refused("spawn_cursor_too_old").Member("detail")))
	require.JSONEq(t, `{"current_daemon_incarnation":"`+now.DaemonIncarnation+`"}`,
		string(subscribe(c, Doc{"daemon_incarnation": "x", "seq": 5}).Wait().Refused("spawn_cursor_incarnation_mismatch").Member("detail")))
	subscribe(c, at(99)) // ahead of the newest: accepted and silent
	c.Quiet()
}

func TestLaggingSubscriberIsToldWhere(t *testing.T) {
	r := newTestRig(t, Config{})
	l := r.Launch("tool")
	c := r.client()
	sub := subscribe(c, nil)
	c.Settle()
	c.Pause()
	// One frame may still be read. Behind the next there is room for a few events.
	r.fill(make([]byte, 100))
	r.fill(make([]byte, MaxQueued-2000))
	for range 40 {
		l = r.LaunchAs("tool", l.PID+1)
	}
	c.Resume()
	var detail struct {
		First cursor `json:"first_undelivered_cursor"`
	}
	refused := sub.Wait().Refused("spawn_subscriber_lagged")
	require.NoError(t, json.Unmarshal(refused.Member("detail"), &detail))
	// What was queued came before the reason, without a gap.
	seen := uint64(1)
	for {
		f := c.Next()
		if f.Type == wire.StreamData {
			var e spawnEvent
			Reply{c.Peer, f}.Into(&e)
			require.Equal(t, seen+1, e.Cursor.Seq)
			seen = e.Cursor.Seq
		} else if len(f.Body) > 100 {
			break
		}
	}
	c.Settle()
	for len(c.inbox) > 0 {
		require.Equal(t, seen+1, nextEvent(t, c, sub.Corr).Cursor.Seq)
		seen++
	}
	require.Equal(t, seen+1, detail.First.Seq)
}

func TestSubscriptionEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{})
		c := r.client()
		subscribe(c, nil)
		c.Settle()
		require.Len(t, r.feed.subs, 1)
		c.Close()
		synctest.Wait()
		require.Empty(t, r.feed.subs)
	})
}

// fill queues a push of that size for the connection that follows the feed.
func (r *rig) fill(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.feed.subs {
		s.conn.out.push(wire.AppendFrame(nil, wire.Header{Type: wire.Push}, body))
	}
}

func TestReservedHelloNeedsTheCurrentNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "vault", Reserved: true}}})
		old := r.Launch("vault")
		m := r.module("vault", Nonce(old))
		r.Crash(old, 9)
		m.Close()
		next := r.after(old)
		m = DialModulePipe(t, r.Router)
		m.StartHello("vault", Nonce(old)).Wait().Refused("reserved_module")
		m.Hello("vault", Nonce(next))
		m.Serve()
		c := r.client()
		c.OpenRefused("bad_consumer_identity", "vault", As(old))
		c.Open("vault", As(next))
	})
}

func TestQ6_ProcessGoneAndConnectionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool"}}})
		m, l := r.launched("tool")
		m.Serve()
		c := r.client()
		rt := c.Open("tool")
		r.Crash(l, 9)
		c.Quiet()
		c.OpenRefused("module_reloading", "tool")
		elapse(releaseTimeout + time.Millisecond)
		require.Equal(t, "failed", r.list(c)["tool"].State, "given up for good")
		m.Close()
		closed := c.NextPush("route.closed")
		requireBody(t, `{"op":"route.closed","module_id":"tool","reason":"crash","drained":false,"abandoned":0,"excluded_subscriptions":0,"terminal":true}`, closed.Frame)
		rt.NextGoodbye()
		elapse(time.Hour)
		require.Equal(t, "failed", r.list(c)["tool"].State)

		// One whose connection goes within the second is started again.
		again := r.Launch("tool")
		m = r.module("tool", Nonce(again))
		r.Crash(again, 9)
		elapse(releaseTimeout / 2)
		m.Close()
		require.EqualValues(t, 3, r.after(again).Generation)
	})
}

func TestRestartDrainsBeforeItEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool"}}, DrainTimeout: 5 * time.Second})
		m, l := r.launched("tool")
		c, op := r.client(), r.client()
		o := c.StartOpen("tool")
		b := m.NextBind()
		b.Ack()
		rt := o.Route()
		call := rt.Start([]byte("slow"))
		m.Next()
		held := c.StartOpen("tool")
		heldBind := m.NextBind()

		requireBody(t, `{"op":"supervisor.ack","module_id":"tool","applied":true}`, op.Ask(Doc{"op": "supervisor.restart", "module_id": "tool"}).Frame)
		m.NextPush("module.draining")
		heldBind.NextGoodbye()
		held.Wait().Refused("module_reloading")
		requireBody(t, `{"op":"route.closing","module_id":"tool","reason":"restart"}`, c.NextPush("route.closing").Frame)
		c.OpenRefused("module_reloading", "tool")
		rt.Start([]byte("new")).Wait().Refused("module_reloading")
		c.Quiet()

		b.Send(wire.Response, 0, call.Corr, []byte("done"))
		require.Equal(t, "done", string(call.Wait().Frame.Body))
		requireBody(t, `{"op":"route.closed","module_id":"tool","reason":"restart","drained":true,"abandoned":1,"excluded_subscriptions":0,"terminal":false}`,
			c.NextPush("route.closed").Frame)
		rt.NextGoodbye()
		m.NextGoodbye(0, 0)
		m.Quiet()
		require.Equal(t, "draining", r.list(c)["tool"].State)
		r.Exit(l, 0)
		m.Close()
		next := r.after(l)
		require.EqualValues(t, 2, next.Generation)
		r.module("tool", Nonce(next)).Serve()
		c.Open("tool")
		op.Ask(Doc{"op": "supervisor.restart", "module_id": "zz"}).Refused("unknown_module")
	})
}

func TestRestartOfABusyModuleRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := 800 * time.Millisecond
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool", DrainTimeout: &d}}})
		m, l := r.launched("tool")
		c := r.client()
		o := c.StartOpen("tool")
		m.NextBind().Ack()
		rt := o.Route()
		rt.Start([]byte("never"))
		rt.Send(wire.Request, wire.FlagSubscription, 500, []byte("held"))
		c.Settle()
		require.NoError(t, r.Restart("tool"))
		c.NextPush("route.closing")
		start := time.Now()
		closed := c.NextPush("route.closed")
		require.Equal(t, d, time.Since(start))
		requireBody(t, `{"op":"route.closed","module_id":"tool","reason":"restart","drained":false,"abandoned":0,"excluded_subscriptions":1,"terminal":false}`, closed.Frame)
		rt.NextGoodbye()
		// Asked over its connection, it has the same time again, and then is killed.
		elapse(d + time.Millisecond)
		got := r.list(c)["tool"]
		require.Equal(t, 9, *got.Signal)
		require.Equal(t, "deliberate_severance", got.Kind)
		m.Close()
		r.after(l)
	})
}

func TestADrainDoesNotWaitForSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool"}}})
		m, _ := r.launched("tool")
		c := r.client()
		o := c.StartOpen("tool")
		m.NextBind().Ack()
		o.Route().Send(wire.Request, wire.FlagSubscription, 500, []byte("held"))
		c.Settle()
		start := time.Now()
		require.NoError(t, r.Restart("tool"))
		c.NextPush("route.closing")
		closed := c.NextPush("route.closed")
		require.Zero(t, time.Since(start))
		require.Equal(t, "true", string(closed.Member("drained")))
		require.Equal(t, "1", string(closed.Member("excluded_subscriptions")))
	})
}

func TestSetEnabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{Modules: []ModuleConfig{{ID: "tool"}}})
		m, l := r.launched("tool")
		m.Serve()
		c := r.client()
		rt := c.Open("tool")
		set := func(on bool) Reply {
			return c.Ask(Doc{"op": "supervisor.set_enabled", "module_id": "tool", "enabled": on})
		}
		off := set(false).OK()
		require.Equal(t, "true", string(off.Member("applied")))
		c.NextPush("route.closing")
		require.Equal(t, "true", string(c.NextPush("route.closed").Member("terminal")))
		rt.NextGoodbye()
		r.Exit(l, 0)
		require.Equal(t, listed{ModuleID: "tool", State: "disabled", Generation: 1, Code: ptr(0), Kind: "clean"}, r.list(c)["tool"])
		c.Ask(Doc{"op": "supervisor.restart", "module_id": "tool"}).Refused("module_disabled")
		set(true).OK()
		require.EqualValues(t, 2, r.after(l).Generation)
	})
}
