package launch

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/config"
	"scopeward/sidecar/router"
	"scopeward/table"
)

// Router is whom the table asks. [router.Link] is one.
type Router interface {
	Modules(ctx context.Context) ([]router.Module, error)
	SpawnSnapshot(ctx context.Context) (router.Snapshot, error)
	Attest(ctx context.Context, moduleID, nonce string) (router.Verdict, error)
	Registered(ctx context.Context, moduleID string) (bool, error)
}

// Feed is an open subscription to launches. [router.Feed] is one.
type Feed interface {
	Next(ctx context.Context) (router.Event, error)
	Close()
}

// Link is a router that is there.
type Link struct {
	Router
	// Subscribe opens the spawn feed. It is nil for a router that has none.
	Subscribe func(since router.Cursor) (Feed, error)
	// PID is the router's own process, from its connection file.
	PID uint32
}

// Params are what a table needs for life.
type Params struct {
	Log        *zap.Logger
	Mode       config.AttributionMode
	Match      config.Match
	Attributor Attributor // nil exactly when Mode is off
	// Report takes every mismatch between an identity and a process. It must not
	// block. nil reports to nobody.
	Report func(Mismatch)
}

// Table is the launch table. It implements [proxy.Launches] and [proxy.Peers].
type Table struct {
	p      Params
	policy atomic.Pointer[policy]

	mu    sync.Mutex
	peers map[proxy.ConnID]held
	span  *span // nil while there is no router
}

// New returns a table without a router.
func New(p Params) *Table {
	t := &Table{p: p, peers: map[proxy.ConnID]held{}}
	t.policy.Store(&policy{p.Mode, p.Match})
	return t
}

// Attach begins a span: it asks the router who is launched and follows its feed
// until [Table.Detach]. It must come before the proxy serves that router. cut
// ends a connection of the proxy at once; it must not block.
func (t *Table) Attach(ctx context.Context, l Link, cut func(id proxy.ConnID, why string)) error {
	s := newSpan(t, l, cut)
	if err := s.begin(ctx); err != nil {
		s.end()
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.span = s
	return nil
}

// Relink goes on with another link to the same start of the router. The feed is
// taken up where it broke.
func (t *Table) Relink(l Link) {
	if s := t.current(); s != nil {
		s.wire.Store(&l)
	}
}

// Detach forgets everything that was learned of the router and waits for what is
// being asked. It must come after the proxy has closed the span's sessions.
func (t *Table) Detach() {
	t.mu.Lock()
	s := t.span
	t.span = nil
	t.mu.Unlock()
	if s != nil {
		s.end()
	}
}

func (t *Table) current() *span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.span
}

// Registered notes an accepted Hello and begins to judge its nonce. See
// [proxy.Launches].
func (t *Table) Registered(id proxy.ConnID, moduleID, nonce string) {
	if s := t.current(); s != nil {
		s.add(id, moduleID, nonce)
	}
}

// Unregistered notes the end of a registration. See [proxy.Launches].
func (t *Table) Unregistered(id proxy.ConnID) {
	if s := t.current(); s != nil {
		s.remove(id)
	}
}

// Ask answers a question of the proxy. See [proxy.Launches]. Without a router
// the answers are those that grant nothing and deny nothing for good.
func (t *Table) Ask(q proxy.Question, reply func(proxy.Answer)) {
	s := t.current()
	if s == nil {
		reply(proxy.Answer{Configured: true})
		return
	}
	s.answer(q, reply)
}

// registration is one accepted Hello that is still registered.
type registration struct {
	conn   proxy.ConnID
	nonce  string // secret; "" when none was presented
	print  fingerprint
	module *module

	verdict    router.Verdict
	beside     uint64 // the generation that was registered already when its Hello came, 0 for none
	bornKnown  bool
	born       uint64 // the newest generation when it registered, 0 for none
	bornLive   bool   // and it lived
	generation uint64 // its launch's, 0 while it is not placed
	launch     table.Launch
}

// fingerprint stands for a nonce wherever nonces are compared or kept: what a
// comparison's time tells of it tells nothing of the nonce.
type fingerprint [sha256.Size]byte

func fingerprintOf(nonce string) fingerprint { return sha256.Sum256([]byte(nonce)) }

// open reports whether the registration may still be placed.
func (r *registration) open() bool { return r.nonce != "" && r.verdict != router.Foreign }

// module is what is known of one module id.
type module struct {
	id     string
	turn   chan struct{} // one token: the right to ask the router about it
	newest uint64        // generation of the newest launch, 0 for none
	live   map[uint64]*process
	regs   []*registration              // in the order their Hellos were accepted
	minted map[fingerprint]table.Launch // by nonce; routers without a feed
	pinned map[fingerprint]Process      // by nonce: the launch that used it first
	owned  map[uint64]fingerprint       // by generation: the nonce that was placed in it first
	swap   *Process                     // a candidate that attribution let in before the feed named it
}

// process is one living launch.
type process struct {
	generation uint64
	pid        uint32
	seen       Process // Start is 0 when it was not looked up or is gone
	launch     table.Launch
}

// currentLocked returns the current launch, nil when none lives.
func (m *module) currentLocked() *process { return m.live[m.newest] }
