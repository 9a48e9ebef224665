package proxy

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/table"
)

// fakeJournal settles at once, or when it is told to.
type fakeJournal struct {
	noted atomic.Int64
	gates chan gate // the next Settle takes one, if there is one
}

// gate is closed from both sides: asked by the journal, open by the test.
type gate struct{ asked, open chan struct{} }

func (j *fakeJournal) Note(ends []table.End, contents []table.Content) {
	j.noted.Add(int64(len(ends) + len(contents)))
}

func (j *fakeJournal) Settle() {
	select {
	case g := <-j.gates:
		close(g.asked)
		<-g.open
	default:
	}
}

// The answer to an accepted call comes after the journal has settled, its drains
// before that: a revocation never waits for a disk, nor does another frame of the
// owner's.
func TestAnAnswerWaitsForTheJournalAndADrainDoesNot(t *testing.T) {
	f := newFront(t)
	j := &fakeJournal{gates: make(chan gate, 1)}
	f.server.p.Journal = j
	up := f.router.File()
	f.server.Attach(Upstream{Addr: up.Endpoints[0].Address(), Key: up.Key, DaemonID: up.DaemonID}, "01")
	owner := f.module("owner")
	owner.Sync(1, head("s")).OK()
	require.Equal(t, int64(1), j.noted.Load())
	f.module("tool").Serve()
	other := f.client().Open("tool")
	route := f.client().Open("tool", scope("s"))

	g := gate{make(chan struct{}), make(chan struct{})}
	j.gates <- g
	answer := owner.Start(wire.Request, wire.ControlChannel, 0,
		routertest.Doc{"op": wire.OpScopeSync, "generation": 2, "scopes": []any{}})
	select {
	case <-g.asked:
	case <-time.After(routertest.Patience):
		require.Fail(t, "the journal was not asked to settle")
	}
	route.Drained("scope_ended")
	other.Call("while the disk is slow")
	require.False(t, answer.Answered(), "before the journal has settled")
	close(g.open)
	answer.Wait().OK()
	require.Equal(t, int64(2), j.noted.Load())
}
