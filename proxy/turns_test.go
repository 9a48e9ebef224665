package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// crowd has n clients, each with one scoped open of s@1 at the router or in line.
func (r *rig) crowd(n int) []*end {
	clients := make([]*end, n)
	for i := range clients {
		clients[i] = r.connect()
		clients[i].fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	}
	return clients
}

func TestTurns_OpenersOfOneModuleTakeThemInTheOrderTheyCame(t *testing.T) {
	r := newRig(t)
	clients := r.crowd(maxMarked + 2)
	for i, c := range clients {
		require.Len(t, c.toRouter(), b2i(i < maxMarked), "opener %d", i)
	}
	clients[3].fromRouter(frame(wire.Error, 7, doc{"code": "scope_not_live", "message": "m"}))
	require.Len(t, clients[maxMarked].toRouter(), 1, "the first in line goes")
	require.Empty(t, clients[maxMarked+1].toRouter())
	clients[4].s.End("closed")
	require.Len(t, clients[maxMarked+1].toRouter(), 1, "a connection's end gives its turn back")
}

func TestTurns_AnUnscopedOpenAndAnotherModuleWaitForNobody(t *testing.T) {
	r := newRig(t)
	r.crowd(maxMarked)
	c := r.connect()
	c.fromPeer(frame(wire.Request, 1, openBody(nil)))
	require.Len(t, c.toRouter(), 1)
	c.fromPeer(frame(wire.Request, 2, openBody(doc{"scope": selector("s", 1), "target": doc{"kind": "tool_provider", "module_id": "other"}})))
	require.Len(t, c.toRouter(), 1)
}

func TestTurns_AModuleThatAnswersNoBindHoldsNobodyUpForLong(t *testing.T) {
	r := newRig(t)
	clients := r.crowd(maxMarked + 1)
	late := clients[maxMarked]
	r.world.Sweep()
	require.Empty(t, late.toRouter(), "one look notes who waits")
	r.world.Sweep()
	require.Len(t, late.toRouter(), 1, "the next lets them go")
}

func TestTurns_WhoLeavesTheLineIsNotWaitedFor(t *testing.T) {
	r := newRig(t)
	clients := r.crowd(maxMarked + 2)
	clients[maxMarked].s.End("closed")
	clients[0].s.End("closed")
	require.Len(t, clients[maxMarked+1].toRouter(), 1)
	for _, c := range clients[1:maxMarked] {
		c.s.End("closed")
	}
	clients[maxMarked+1].s.End("closed")
	require.Empty(t, r.world.turns.lines, "nothing of it is left")
}

func TestTurns_ARouterThatStartsTheConnectionOverLeavesNobodyParked(t *testing.T) {
	r := newRig(t)
	clients := r.crowd(maxMarked + 1)
	late := clients[maxMarked]
	late.fromRouter(wire.Header{Type: wire.Goodbye}.Append(nil))
	clients[0].s.End("closed")
	require.Len(t, late.toRouter(), 1)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
