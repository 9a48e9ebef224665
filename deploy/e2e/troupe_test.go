package e2e

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

const idProvider = "provider" // an actor that binds come to

// troupe is a world whose modules are all actors, and an opener: a client
// connection of the carrier's launch. Every byte of theirs comes from a process
// that the router launched, so that each can be killed and stopped.
type troupe struct {
	*world
	stage      *stage
	cast       map[string]*performer
	opener     *link
	tokens     int
	generation uint64 // of the owner's last sync on its connection

	holding atomic.Bool     // binds are kept instead of answered
	binds   chan wire.Frame // what was kept
}

// performer is one module of the troupe.
type performer struct {
	launch *launch
	link   *link // its registration
	used   bool  // the launch has registered
	again  bool  // its launch may register once more: it closed by itself
}

// newTroupe starts a world and waits until everybody is there. prepare comes
// before anything is started.
func newTroupe(t *testing.T, prepare ...func(*world)) *troupe {
	t.Helper()
	w := newWorld(t, map[string]module{})
	tr := &troupe{world: w, cast: map[string]*performer{}, binds: make(chan wire.Frame, 64)}
	for _, id := range []string{idOwner, idCarrier, idProvider} {
		w.modules[id] = w.actor()
		tr.cast[id] = &performer{}
	}
	w.configure()
	for _, p := range prepare {
		p(w)
	}
	tr.stage = w.openStage()
	t.Cleanup(func() {
		for _, p := range tr.cast {
			if p.launch != nil {
				p.launch.line.Close()
			}
		}
	})
	w.startRouter()
	w.startSidecar()
	tr.gather(2 * patience)
	return tr
}

// launchRouter starts the router again, once what hung on its last life is seen to
// have ended: gather would take it for today's.
func (tr *troupe) launchRouter() {
	tr.t.Helper()
	tr.parted()
	tr.world.launchRouter()
}

// launchSidecar is launchRouter of the sidecar.
func (tr *troupe) launchSidecar() {
	tr.t.Helper()
	tr.parted()
	tr.world.launchSidecar()
}

// parted waits until every connection through an ended daemon has ended.
func (tr *troupe) parted() {
	tr.t.Helper()
	for _, l := range tr.links() {
		within(tr.t, patience, "the connections to end", func() bool { return l == nil || over(l) })
	}
}

// perform answers a module's frames as a plain provider does, and keeps binds
// while they are to be held.
func (tr *troupe) perform(l *link, f wire.Frame) bool {
	var body struct {
		Op string `json:"op"`
	}
	if f.Type == wire.Request && f.Channel == 0 && tr.holding.Load() &&
		json.Unmarshal(f.Body, &body) == nil && body.Op == wire.OpRouteBind {
		tr.binds <- f
		return true
	}
	return serve(l, f)
}

// release answers the binds that were kept, late as they may be, where there is
// still somebody to answer.
func (tr *troupe) release() {
	tr.holding.Store(false)
	for len(tr.binds) > 0 {
		bind := <-tr.binds
		if provider := tr.cast[idProvider].link; !over(provider) {
			serve(provider, bind)
		}
	}
}

// gather waits until every module is registered and the opener connected.
func (tr *troupe) gather(limit time.Duration) time.Duration {
	tr.t.Helper()
	missing := "nobody"
	defer func() {
		if tr.t.Failed() {
			tr.t.Logf("last missing: %s", missing)
		}
	}()
	return within(tr.t, limit, "everybody to be there", func() bool {
		tr.collect()
		for id, p := range tr.cast {
			if !tr.bring(id, p) {
				missing = id
				return false
			}
		}
		if tr.opener == nil || over(tr.opener) {
			missing = "the opener"
			tr.opener = tr.dial(tr.cast[idCarrier].launch, nil)
		}
		return tr.opener != nil
	})
}

// collect takes the launches that came. The newest of a module counts.
func (tr *troupe) collect() {
	for len(tr.stage.launches) > 0 {
		l := <-tr.stage.launches
		p := tr.cast[l.ModuleID]
		if p.launch != nil {
			p.launch.line.Close()
		}
		*p = performer{launch: l}
	}
}

// bring has a module register, and reports whether it is there. A module whose
// connection was ended for it exits, as the SDK's do.
func (tr *troupe) bring(id string, p *performer) bool {
	switch {
	case p.launch == nil:
		return false
	case p.link != nil && !over(p.link):
		return true
	case p.used && !p.again:
		p.launch.line.Close()
		return false
	}
	p.used = true
	link := tr.dial(p.launch, tr.perform)
	if link == nil {
		return false
	}
	f, ok := link.answer(link.ask(wire.Header{Type: wire.Hello}, p.launch.hello(true)))
	if !ok || f.Type != wire.HelloAck {
		tr.t.Logf("%s was not let in: %v %s", id, f.Type, f.Body)
		link.close()
		return false
	}
	p.link, p.again = link, false
	if id == idOwner {
		tr.generation = 0
	}
	return true
}

// dial has a launched process connect, nil when it does not.
func (tr *troupe) dial(l *launch, answer func(*link, wire.Frame) bool) *link {
	if conn := tr.hand(l); conn != nil {
		return newLinkOn(tr.t, conn, answer)
	}
	return nil
}

// hand is a new connection of a launched process, nil when it opens none.
func (tr *troupe) hand(l *launch) net.Conn {
	tr.tokens++
	token := fmt.Sprintf("%s %d", l.ModuleID, tr.tokens)
	if _, err := l.line.Write([]byte(token + "\n")); err != nil {
		return nil
	}
	limit := time.After(patience / 4)
	for {
		select {
		case conn := <-tr.stage.handed:
			if conn.token == token {
				return conn
			}
			conn.Close() // of an attempt that was given up
		case <-limit:
			return nil
		}
	}
}

// over reports whether a link has ended.
func over(l *link) bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// sync has the owner sync, which must be accepted.
func (tr *troupe) sync(records ...object) {
	tr.t.Helper()
	tr.generation++
	require.Empty(tr.t, tr.cast[idOwner].link.sync(tr.generation, records...))
}

// asked sends the opener's open under ref.
func (tr *troupe) asked(ref string) <-chan wire.Frame {
	body := as(tr.scoped(idProvider, ref, 1), idCarrier, tr.cast[idCarrier].launch.Nonce)
	return tr.opener.ask(wire.Header{}, wire.MustMarshal(body))
}

// mustOpen opens a route under ref and makes a call on it.
func (tr *troupe) mustOpen(ref string) *route {
	tr.t.Helper()
	f := tr.opener.await(tr.asked(ref))
	require.Equal(tr.t, wire.Response, f.Type, "%s", f.Body)
	r := decode[route](tr.t, f)
	require.Equal(tr.t, wire.Response, tr.opener.call(r, object{"n": "1"}).Type)
	return r
}
