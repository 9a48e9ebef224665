package proxy

import (
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// readSize is how much a loop reads at once. Large reads beat splice here.
const readSize = 256 << 10

// stuckLimit is how long a Goodbye of ours may wait for a peer that stopped in
// the middle of a frame or does not read, before that pair of connections is
// cut: a drain is never held up.
const stuckLimit = time.Second

// lingerLimit is how long the last bytes of one side may take to reach the
// other once the first has closed.
const lingerLimit = time.Second

// readsInARow is how many reads one side gets before the loop looks at the others.
const readsInARow = 4

// pair is a session with its two sockets.
type pair struct {
	session *Session
	loop    atomic.Pointer[Loop] // whose thread it is on; only that thread moves it
	home    *Loop                // where modules are served
	sides   [2]side              // by the direction their bytes travel: toRouter is the peer's
	due     time.Time
	wants   bool // in its loop's line for units
	told    bool // that it is paced
	linger  bool // one side has closed: what is left is being flushed
	done    func(reason string)
}

// side is one socket of a pair. Bytes read from it travel in its direction.
type side struct {
	pair     *pair
	dir      direction
	fd       int
	readable bool
	hup      bool // the peer has closed its sending end: read on to the end
	queued   bool // in ready
	out      []byte
	urgent   int       // bytes of out up to and with the last Goodbye of ours; 0 when it is gone
	since    time.Time // when what it is being sent was read, if that is measured
}

// mayRead reports whether a side's bytes have somewhere to go: the other side
// takes what it is sent, this side takes the answers to its own requests, and
// nothing parked is full.
func (p *pair) mayRead(sd *side) bool {
	return len(p.sides[sd.dir.other()].out) == 0 && (len(sd.out) <= readSize || sd.hup) && !p.session.Full(sd.dir)
}

// read moves what a side has sent.
func (l *Loop) read(sd *side) {
	p := sd.pair
	for range readsInARow {
		if !sd.readable || p.linger || !p.mayRead(sd) {
			return
		}
		n, err := l.kernel.read(sd.fd, l.buf)
		switch {
		case n > 0:
			to := &p.sides[sd.dir.other()]
			if l.times.due() {
				to.since = time.Now()
			}
			if sd.dir == toRouter {
				p.session.FromPeer(l.buf[:n])
			} else {
				p.session.FromRouter(l.buf[:n])
			}
			if p.session.Called() {
				l.ration.calls.Add(1)
			}
			// A short read has emptied the socket; the edge comes again with more.
			if n < len(l.buf) && !sd.hup {
				sd.readable = false
			}
			l.carry(p, sd.dir)
			if sd.fd < 0 {
				return
			}
			if len(to.out) == 0 {
				to.since = time.Time{} // nothing of it was for the other side
			}
			if l != p.home && p.session.role == registered {
				l.move(p, p.home)
				return
			}
		case err == unix.EAGAIN:
			sd.readable = false
			return
		case err == unix.EINTR:
		default:
			l.ended(sd, err)
			return
		}
	}
	l.again(sd)
}

// ended passes a close on at once. What the other side has not yet been sent
// gets a moment to reach it.
func (l *Loop) ended(sd *side, err error) {
	p := sd.pair
	reason := "the peer closed"
	if sd.dir == toPeer {
		reason = "the router closed"
	}
	if err != nil {
		reason += ": " + err.Error()
	}
	if sd.dir == toRouter { // what waits for units was sent before: a module's Goodbye, say
		p.session.Refill(math.MaxInt32)
		l.deliver(p, toRouter)
		if sd.fd < 0 {
			return
		}
	}
	p.session.End(reason)
	if len(p.sides[sd.dir.other()].out) == 0 {
		l.drop(p, reason)
		return
	}
	p.linger = true
	l.arm(p, lingerLimit)
}

// carry writes what the session wrote to both sockets, what goes on in dir before
// what turns back, tells it what its peer has not taken, and closes the pair when
// the session has ended.
func (l *Loop) carry(p *pair, dir direction) {
	l.deliver(p, dir)
	l.deliver(p, dir.other())
	if p.sides[0].fd < 0 {
		return
	}
	if p.session.subs != nil && p.session.Unsent(len(p.sides[toRouter].out)) {
		l.postIdle(func() { l.handle(p, feedEvent{}, func() {}) })
	}
	l.provide(p)
	l.settle(p)
}

func (l *Loop) deliver(p *pair, dir direction) {
	if p.sides[0].fd < 0 {
		return
	}
	segs, goodbye := p.session.outs[dir].take()
	if len(segs) > 0 {
		l.send(&p.sides[dir.other()], segs, goodbye)
		clear(segs) // what was relayed is not kept alive
	}
}

// settle closes a pair whose session has ended, and watches over a Goodbye that
// does not get through.
func (l *Loop) settle(p *pair) {
	if p.sides[0].fd < 0 {
		return
	}
	if p.session.Ended() {
		if p.linger {
			return
		}
		for i := range p.sides {
			if len(p.sides[i].out) > 0 {
				p.linger = true
				l.arm(p, lingerLimit)
				return
			}
		}
		l.drop(p, p.session.reason)
		return
	}
	if p.session.Stuck() || p.sides[0].urgent > 0 || p.sides[1].urgent > 0 {
		l.arm(p, stuckLimit)
	} else if !p.due.IsZero() {
		p.due = time.Time{}
	}
}

// send writes segments to a side's socket; what it does not take is copied.
func (l *Loop) send(sd *side, segs [][]byte, goodbye bool) {
	for len(sd.out) == 0 && len(segs) > 0 {
		var b []byte
		b, segs = l.together(segs)
		n, ok := l.write(sd, b)
		if !ok {
			return
		}
		if n < len(b) {
			sd.out = append(sd.out, b[n:]...)
		}
	}
	for _, b := range segs {
		sd.out = append(sd.out, b...)
	}
	if goodbye {
		sd.urgent = len(sd.out)
	}
	if len(sd.out) == 0 {
		l.times.taken(sd)
	}
}

// maxTogether is how many bytes are put together: copying them costs less than
// another write does.
const maxTogether = 16 << 10

// together takes the next write's bytes off segs: one segment, or several small
// ones put together until the next write.
func (l *Loop) together(segs [][]byte) ([]byte, [][]byte) {
	if len(segs) == 1 || len(segs[0])+len(segs[1]) > maxTogether {
		return segs[0], segs[1:]
	}
	l.pack = l.pack[:0]
	for len(segs) > 0 && len(l.pack)+len(segs[0]) <= maxTogether {
		l.pack, segs = append(l.pack, segs[0]...), segs[1:]
	}
	return l.pack, segs
}

// write writes b and returns how much of it went, and false when the socket is
// gone.
func (l *Loop) write(sd *side, b []byte) (int, bool) {
	done := 0
	for done < len(b) {
		n, err := l.kernel.write(sd.fd, b[done:])
		switch {
		case n > 0:
			done += n
		case err == unix.EAGAIN:
			return done, true
		case err == unix.EINTR:
		default:
			l.drop(sd.pair, "write: "+err.Error())
			return done, false
		}
	}
	return done, true
}

// flush sends what a socket did not take before.
func (l *Loop) flush(sd *side) {
	n, ok := l.write(sd, sd.out)
	if !ok {
		return
	}
	sd.urgent = max(0, sd.urgent-n)
	if n == len(sd.out) {
		sd.out = nil // an idle connection holds no buffer
		l.times.taken(sd)
		l.carry(sd.pair, toRouter)
		if p := sd.pair; p.linger && p.sides[0].fd >= 0 && len(p.sides[0].out)+len(p.sides[1].out) == 0 {
			l.drop(p, p.session.reason)
		}
		return
	}
	sd.out = sd.out[n:]
}

// handle gives a session an event. One whose peer already has too much unread
// is closed instead: nothing unsolicited piles up. gone is called when there is
// no session any more.
func (l *Loop) handle(p *pair, e Event, gone func()) {
	if now := p.loop.Load(); now != l {
		if !now.post(func() { now.handle(p, e, gone) }) {
			gone()
		}
		return
	}
	if p.sides[0].fd < 0 {
		gone()
		return
	}
	p.session.Handle(e)
	for i := range p.sides {
		if len(p.sides[i].out) > maxQueued {
			p.session.cut("its peer does not read: too much is queued")
			p.linger = true
			l.drop(p, p.session.reason)
			return
		}
	}
	l.carry(p, toRouter)
	if p.sides[0].fd >= 0 {
		l.again(&p.sides[0])
		l.again(&p.sides[1])
	}
}

// drop closes both sockets, at once and once.
func (l *Loop) drop(p *pair, reason string) {
	if p.sides[0].fd < 0 {
		return
	}
	p.session.End(reason)
	for i := range p.sides {
		sd := &p.sides[i]
		delete(l.byFD, int32(sd.fd))
		unix.Close(sd.fd)
		sd.fd, sd.out = -1, nil
	}
	delete(l.pairs, p)
	l.load.Add(-1)
	p.done(reason)
}

// arm gives a pair a deadline, unless it has one.
func (l *Loop) arm(p *pair, d time.Duration) {
	if p.due.IsZero() {
		p.due = time.Now().Add(d)
		l.timers = append(l.timers, p)
	}
}
