package proxy

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"scopeward/admission"
	"scopeward/table"
)

// World is what the sessions of one router incarnation share. A session keeps
// the world it was born in: when the router goes, its world goes with it.
type World struct {
	Table       *table.Table
	Incarnation string // 32 hex digits, ours: scopes are lost with our restart too

	up       Upstream
	pass     bool // the router serves scopes itself: nothing is read
	log      *zap.Logger
	launches Launches
	recorder Recorder
	journal  Journal // nil: none
	now      func() int64
	post     func(ConnID, Event) // to a session's driver; never blocks
	work     func(func())        // runs a job off the drivers' threads

	turns   turns   // of marked opens at the router
	changes changes // the rendered tail of the table's feed
	spares  *spares // upstream connections

	telling sync.Mutex // owners' calls are recorded one after another

	mu    sync.Mutex
	opens map[string]*open // by mark
	tidy  *time.Timer      // gives memory back, nil before the first huge call
}

// Upstream is the router that a world stands in front of.
type Upstream struct {
	Addr      string // loopback host:port
	Key       []byte // secret
	DaemonID  []byte
	DaemonVer string
	Pass      bool // it serves scopes, and we were told to let it
}

// send registers an open before it is forwarded.
func (w *World) send(op *open) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opens[op.mark] = op
}

// find returns the open that one of marks belongs to. More than one mark is
// nobody's.
func (w *World) find(marks []string) (*open, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	op, ok := w.opens[marks[0]]
	return op, ok && len(marks) == 1 && op.state == openSent
}

// admission judges a bind and says how long that took.
func (w *World) admission(a admission.Ask) (admission.Decision, time.Duration) {
	start := time.Now()
	d := admission.Admit(w.Table, a)
	return d, time.Since(start)
}

// commitment settles an admitted bind and says how long that took.
func (w *World) commitment(admitted admission.Decision) (admission.Decision, time.Duration) {
	start := time.Now()
	d := admission.Commit(w.Table, admitted)
	return d, time.Since(start)
}

// take uses a mark up without a route.
func (w *World) take(op *open) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.opens, op.mark)
	if op.state != openGone {
		op.state = openTaken
	}
	op.route = 0
}

// admit uses a mark up for a reserved route. It fails when the opener gave the
// open up meanwhile: the caller releases the route.
func (w *World) admit(op *open, route table.RouteID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.opens, op.mark)
	if op.state != openSent {
		return false
	}
	op.state, op.route = openAdmitted, route
	return true
}

// commit notes that the open's route is live. It comes before the ack is
// forwarded, so before the opener can read its answer.
func (w *World) commit(op *open) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if op.state == openAdmitted {
		op.state = openLive
	}
}

// finish ends an open and returns the route it holds, and whether that route is
// live.
func (w *World) finish(op *open) (route table.RouteID, live bool) {
	w.callTurns(w.turns.give(op.turn))
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.opens, op.mark)
	route, live = op.route, op.state == openLive
	op.state, op.route = openGone, 0
	return route, live
}

func (w *World) routeOf(op *open) table.RouteID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return op.route
}

// deliver posts drains to their openers, in the order they were decided.
func (w *World) deliver(drains []table.Drain) {
	var order []ConnID
	batches := make(map[ConnID][]table.Drain)
	for _, d := range drains {
		if _, ok := batches[d.Opener.Conn]; !ok {
			order = append(order, d.Opener.Conn)
		}
		batches[d.Opener.Conn] = append(batches[d.Opener.Conn], d)
	}
	for _, id := range order {
		w.post(id, drainEvent{batches[id]})
	}
}
