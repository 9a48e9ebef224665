package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// queued is a module whose turns two openers hold, and a third that waits.
type queued struct {
	*misuse
	many, some, last *end
}

func newQueued(t *testing.T) *queued {
	x := newMisuse(t)
	q := &queued{x, x.connect(), x.connect(), x.connect()}
	for i := range uint64(maxMarked) {
		c := q.many
		if i >= 8 { // the router's bound for one connection
			c = q.some
		}
		q.open(c, i)
	}
	require.Len(t, q.many.toRouter(), 8)
	require.Len(t, q.some.toRouter(), maxMarked-8)
	q.open(q.last, 1)
	require.Empty(t, q.last.toRouter())
	return q
}

func TestS4_AnOpenerThatWaitsForItsTurnGoesOnWhenOneIsFree(t *testing.T) {
	refusal := wire.ErrorBody{Code: "scope_not_live", Message: "m"}
	for name, free := range map[string]func(q *queued){
		"an open is answered":   func(q *queued) { q.some.fromRouter(frame(wire.Error, 8, refusal)) },
		"an opener ends":        func(q *queued) { q.many.s.End("the peer closed") },
		"an opener starts over": func(q *queued) { q.some.fromPeer(wire.Header{Type: wire.Goodbye}.Append(nil)) },
		"a module answers none": func(q *queued) { q.world.Sweep(); q.world.Sweep() },
		"the module's own route": func(q *queued) {
			q.some.fromRouter(frame(wire.Response, 8, doc{"op": wire.OpRouteOpen, "route_channel": 1, "route_epoch": 1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueued(t)
			q.last.fromPeer(data(wire.Request, 4, 1, "data goes on"), frame(wire.Request, 2, doc{"op": "catalog.list"}))
			require.Equal(t, uint16(4), q.one(q.last.toRouter()).Channel)
			free(q)
			frames := q.last.toRouter()
			require.Len(t, frames, 2, "its open, and what waited behind it")
			require.NotContains(t, body(t, frames[0]), "scope")
			require.Equal(t, uint64(2), frames[1].Corr)
			for _, c := range []*end{q.many, q.some, q.last} {
				c.s.End("the peer closed")
			}
			q.clean()
		})
	}
}

func TestS4_AnOpenerThatVanishesWhileItWaitsHoldsNoTurn(t *testing.T) {
	q := newQueued(t)
	next := q.connect()
	q.open(next, 1)
	q.last.s.End("the peer closed")
	q.some.fromRouter(frame(wire.Error, 8, wire.ErrorBody{Code: "x", Message: "m"}))
	require.Empty(t, q.last.toRouter())
	require.Len(t, next.toRouter(), 1)
	for _, c := range []*end{q.many, q.some, next} {
		c.s.End("the peer closed")
	}
	q.clean()
}

func TestS4_OpensToAnotherModuleAndUnscopedOnesWaitForNobody(t *testing.T) {
	q := newQueued(t)
	c := q.connect()
	c.fromPeer(frame(wire.Request, 1, openBody(nil)),
		frame(wire.Request, 2, openBody(doc{"scope": selector("s", 1), "target": doc{"kind": "tool_provider", "module_id": "other"}})))
	require.Len(t, c.toRouter(), 2)
}
