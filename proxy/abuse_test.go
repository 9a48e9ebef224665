package proxy

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/table"
)

// empty waits until the router has no route and the sidecar holds nothing of any.
func (f *front) empty() {
	f.t.Helper()
	op, until := f.client(), time.Now().Add(routertest.Patience)
	for held := f.held(op); held != ""; held = f.held(op) {
		require.True(f.t, time.Now().Before(until), "still held: %s", held)
	}
}

// held says what there is of any open, bind or route, "" for nothing. A session's
// loop may have yet to read of its connection's end.
func (f *front) held(op *routertest.Client) string {
	f.t.Helper()
	w := f.server.World()
	n := w.Table.Totals()
	w.turns.mu.Lock()
	lines := len(w.turns.lines)
	w.turns.mu.Unlock()
	w.mu.Lock()
	marks := len(w.opens)
	w.mu.Unlock()
	sessions := 0
	for _, i := range f.server.Sessions(f.t.Context()) {
		sessions += i.Pending + len(i.Routes)
	}
	routes := len(op.Routes())
	if routes+lines+marks+sessions == 0 && n == (table.Totals{Synced: n.Synced, Scopes: n.Scopes}) {
		return ""
	}
	return fmt.Sprintf("%d modules' routes, %d lines, %d marks, %d of sessions, %+v", routes, lines, marks, sessions, n)
}

// Section 4's openers beside a loop of opens that are all refused: the router's
// sixteen binds of a module are not theirs to use up.
func TestServerOneGoodOpenerSucceedsBesideFiveThatAreAlwaysRefused(t *testing.T) {
	f := newFront(t)
	f.module("owner").Sync(1, head("s")).OK()
	tool := f.module("tool").Serve()
	stop := make(chan struct{})
	var bad sync.WaitGroup
	refused := make(chan int, 5)
	for range 5 {
		c := f.client()
		bad.Go(func() {
			n := 0
			defer func() { refused <- n }()
			for {
				var opens []*routertest.Opening
				for range routertest.MaxOpens {
					opens = append(opens, c.StartOpen("tool", scope("nope")))
				}
				for _, o := range opens {
					if o.Wait().Code() == "scope_not_live" {
						n++
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	good := f.client()
	const opens = 300
	succeeded := 0
	for range opens {
		r := good.StartOpen("tool", scope("s")).Wait()
		if r.Code() != "" {
			continue
		}
		succeeded++
		b := tool.NextBind()
		b.Goodbye()
		good.Next()
	}
	close(stop)
	bad.Wait()
	require.GreaterOrEqual(t, succeeded*100, opens*99)
	total := 0
	for range 5 {
		total += <-refused
	}
	require.Greater(t, total, opens, "the others were at it all the time")
	tool.NoBind()
	f.empty()
}

func TestServerOpensBeyondTheLimitsWaitOrAreRefusedAndLeaveNothing(t *testing.T) {
	f := newFront(t)
	f.module("owner").Sync(1, head("s")).OK()
	tool := f.module("tool")
	var clients []*routertest.Client
	var opens, ninth []*routertest.Opening
	for range 3 {
		c := f.client()
		clients = append(clients, c)
		for range routertest.MaxOpens {
			opens = append(opens, c.StartOpen("tool", scope("s")))
		}
		ninth = append(ninth, c.StartOpen("tool", scope("s")))
	}
	for range routertest.MaxOpens {
		tool.NextBind().Ack()
	}
	tool.Serve()
	for _, o := range opens {
		o.Route()
	}
	for _, o := range ninth { // some other open of its connection may be answered before it
		require.Contains(t, []string{"", wire.CodeTargetUnavailable}, o.Wait().Code())
	}
	for _, c := range clients {
		c.Close()
	}
	f.empty()
}

func TestServerClientsThatVanishAtEveryStepLeaveNothing(t *testing.T) {
	f := newFront(t)
	owner := f.module("owner")
	owner.Sync(1, head("s")).OK()
	tool := f.module("tool")
	const each = 20
	for range each { // before the bind, or about then
		c := f.client()
		c.StartOpen("tool", scope("s"))
		c.Close()
	}
	for range each { // with the bind in flight
		c := f.client()
		c.StartOpen("tool", scope("s"))
		tool.NextBind()
		c.Close()
	}
	tool.Serve()
	for i := range each { // at the ack
		c := f.client()
		c.StartOpen("tool", scope("s"))
		if i%2 == 0 {
			tool.NextBind()
		}
		c.Close()
	}
	for range each { // after the answer, with a call in flight
		c := f.client()
		c.Open("tool", scope("s")).Start([]byte("x"))
		c.Close()
	}
	for range each { // by a Goodbye on channel 0, and then at work again
		c := f.client()
		c.StartOpen("tool", scope("s"))
		c.Goodbye()
		c.Settle()
		c.Open("tool")
		c.Goodbye()
		c.Settle()
	}
	f.empty()
	owner.Sync(2).OK()
	f.client().OpenRefused("scope_not_live", "tool", scope("s"))
}

func TestServerModulesThatMisbehaveLeaveNothing(t *testing.T) {
	f := newFront(t)
	f.module("owner").Sync(1, head("s")).OK()
	for name, answer := range map[string]func(b *routertest.Bind, m *routertest.Module){
		"it acks twice":     func(b *routertest.Bind, _ *routertest.Module) { b.Ack(); b.Ack() },
		"it acks and parts": func(b *routertest.Bind, _ *routertest.Module) { b.Ack(); b.Goodbye() },
		"it parts and acks": func(b *routertest.Bind, _ *routertest.Module) { b.Goodbye(); b.Ack() },
		"garbage": func(b *routertest.Bind, m *routertest.Module) {
			m.Send(wire.Header{Type: wire.Error, Corr: b.Corr}, []byte("\xff"))
		},
		"it ends":              func(_ *routertest.Bind, m *routertest.Module) { m.Close() },
		"it says Goodbye to 0": func(b *routertest.Bind, m *routertest.Module) { m.Goodbye(); b.Ack() },
		"it refuses and acks":  func(b *routertest.Bind, _ *routertest.Module) { b.Reject("no"); b.Ack() },
	} {
		t.Run(name, func(t *testing.T) {
			tool, c := f.module("tool"), f.client()
			open := c.StartOpen("tool", scope("s"))
			answer(tool.NextBind(), tool)
			open.Wait()
			c.Close()
			f.leave(tool)
			f.empty()
		})
	}
}
