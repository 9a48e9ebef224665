package routertest

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"
)

// Peer is one authenticated connection to a router, or to a sidecar in front of
// one. [Client] and [Module] are Peers. A Peer reads all the time: replies go to
// who asked, everything else waits in order for Next.
type Peer struct {
	tb   TB
	name string // in failures
	nc   net.Conn
	out  *queue
	wg   sync.WaitGroup
	take func(wire.Frame) bool // sees every unasked frame first; true keeps it from Next

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	corr    uint64
	waiting map[replyKey]*Call
	inbox   []wire.Frame
	ended   error // why reading ended, nil while it goes on
	paused  chan struct{}
}

type replyKey struct {
	channel uint16
	corr    uint64
}

// dialFile connects to what f names and authenticates.
func dialFile(tb TB, f connfile.File) net.Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	nc, err := connfile.Dial(ctx, f, handshake.RoleClient)
	if err != nil {
		tb.Fatalf("dial: %v", err)
	}
	return nc
}

func readFile(tb TB, path string) connfile.File {
	tb.Helper()
	f, err := connfile.Read(path)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return f
}

// dialPipe connects to r in memory and authenticates.
func dialPipe(tb TB, r *Router) net.Conn {
	tb.Helper()
	nc := r.Pipe()
	f := r.File()
	if _, err := handshake.Client(nc, f.Key, f.DaemonID, handshake.RoleClient); err != nil {
		nc.Close()
		tb.Fatalf("handshake in memory: %v", err)
	}
	return nc
}

// newPeer starts reading nc. It is closed at the end of the test at the latest.
func newPeer(tb TB, name string, nc net.Conn, take func(wire.Frame) bool) *Peer {
	p := &Peer{
		tb: tb, name: name, nc: nc, out: newQueue(), take: take,
		changed: make(chan struct{}), waiting: map[replyKey]*Call{},
	}
	p.wg.Go(func() { p.out.drain(nc) })
	p.wg.Go(p.read)
	tb.Cleanup(p.Close)
	return p
}

// Close ends the connection at once and waits until nothing of it runs.
func (p *Peer) Close() {
	p.Resume()
	p.out.close()
	p.nc.Close()
	p.wg.Wait()
}

// Conn is the connection, for a test that needs to mistreat it.
func (p *Peer) Conn() net.Conn { return p.nc }

// Pause stops reading, as a peer that hangs does, until Resume.
func (p *Peer) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume goes on after Pause.
func (p *Peer) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

func (p *Peer) read() {
	br := bufio.NewReaderSize(p.nc, readBuffer)
	for {
		p.mu.Lock()
		paused := p.paused
		p.mu.Unlock()
		if paused != nil {
			<-paused
		}
		f, err := wire.ReadFrame(br)
		if err != nil {
			p.end(err)
			return
		}
		p.arrived(f)
	}
}

func (p *Peer) end(err error) {
	p.out.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = err
	p.wakeLocked()
}

func (p *Peer) wakeLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Peer) arrived(f wire.Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wakeLocked()
	key := replyKey{f.Channel, f.Corr}
	switch f.Type {
	case wire.Response, wire.Error, wire.HelloAck, wire.Pong:
		if c := p.waiting[key]; c != nil {
			delete(p.waiting, key)
			c.reply = &f
			return
		}
	}
	if p.take == nil || !p.take(f) {
		p.inbox = append(p.inbox, f)
	}
}

// await waits until ready, called under the lock, is true. It is false when the
// connection ended or Patience ran out first.
func (p *Peer) await(ready func() bool) bool {
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		p.mu.Lock()
		ok, ended, changed := ready(), p.ended != nil, p.changed
		p.mu.Unlock()
		if ok || ended {
			return ok
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}

// why says in a failure what became of the connection.
func (p *Peer) why() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return "the connection ended: " + p.ended.Error()
	}
	s := "waited " + Patience.String()
	for _, f := range p.inbox {
		s += "; has " + describe(f)
	}
	return s
}

// Send sends one frame. Its length is body's.
func (p *Peer) Send(h wire.Header, body []byte) { p.out.push(wire.AppendFrame(nil, h, body)) }

// SendRaw sends bytes as they are.
func (p *Peer) SendRaw(b []byte) { p.out.push(b) }

// Next takes the next frame that nobody asked for.
func (p *Peer) Next() wire.Frame {
	p.tb.Helper()
	var f wire.Frame
	ok := p.await(func() bool {
		if len(p.inbox) == 0 {
			return false
		}
		f, p.inbox = p.inbox[0], p.inbox[1:]
		return true
	})
	if !ok {
		p.tb.Fatalf("%s: no further frame: %s", p.name, p.why())
	}
	return f
}

// NextPush takes the next unasked frame, which must be the push op on channel 0.
func (p *Peer) NextPush(op string) Reply {
	p.tb.Helper()
	f := p.Next()
	r := Reply{p, f}
	if f.Type != wire.Push || f.Channel != wire.ControlChannel || r.Text("op") != op {
		p.tb.Fatalf("%s: wanted the push %s, got %s", p.name, op, describe(f))
	}
	return r
}

// NextGoodbye takes the next unasked frame, which must be the Goodbye of
// (channel, epoch).
func (p *Peer) NextGoodbye(channel uint16, epoch uint32) {
	p.tb.Helper()
	f := p.Next()
	if f.Type != wire.Goodbye || f.Channel != channel || f.Epoch != epoch {
		p.tb.Fatalf("%s: wanted the Goodbye of (%d, %d), got %s", p.name, channel, epoch, describe(f))
	}
}

// Routed is a [Route] or a [Bind]: a (channel, epoch) of this side.
type Routed interface{ pair() (uint16, uint32) }

// NextGoodbyes takes the next unasked frames, which must be the Goodbyes of these
// routes, in any order: a router sends those of one batch as they come.
func (p *Peer) NextGoodbyes(of ...Routed) {
	p.tb.Helper()
	type key struct {
		channel uint16
		epoch   uint32
	}
	left := map[key]bool{}
	for _, r := range of {
		channel, epoch := r.pair()
		left[key{channel, epoch}] = true
	}
	for len(left) > 0 {
		f := p.Next()
		k := key{f.Channel, f.Epoch}
		if f.Type != wire.Goodbye || !left[k] {
			p.tb.Fatalf("%s: wanted one of the Goodbyes of %v, got %s", p.name, left, describe(f))
		}
		delete(left, k)
	}
}

// Quiet settles and fails the test if an unasked frame is there.
func (p *Peer) Quiet() {
	p.tb.Helper()
	p.Settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inbox) > 0 {
		p.tb.Fatalf("%s: wanted nothing, got %s", p.name, describe(p.inbox[0]))
	}
}

// Ended waits until the other side has closed the connection.
func (p *Peer) Ended() {
	p.tb.Helper()
	p.await(func() bool { return false })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.tb.Fatalf("%s: the connection is still open after %s", p.name, Patience)
	}
}

// Goodbye ends the registration or all routes: a Goodbye on channel 0. The
// connection goes on.
func (p *Peer) Goodbye() { p.SendRaw(wire.AppendGoodbye(nil, wire.ControlChannel, 0)) }
