package proxy

import "slices"

// hop is one of the four ways that bytes of a link are under way.
type hop uint8

const (
	peerOut   hop = iota // peer to sidecar
	routerIn             // sidecar to router
	routerOut            // router to sidecar
	peerIn               // sidecar to peer
	hops
)

// simPipe holds the bytes of one hop. Once it is shut nothing comes behind them.
type simPipe struct {
	buf        []byte
	shut, over bool
}

// simPeer is who is at the near end of a link.
type simPeer interface {
	receive(b []byte)
	ended()
	act()        // does something of its own accord
	obey()       // answers what it has held back
	check() bool // whether nothing that it waits for is missing
}

// simLink is one connection through the sidecar.
type simLink struct {
	sim    *sim
	id     ConnID
	s      *Session
	pipes  [hops]simPipe
	events []Event
	peer   simPeer
	far    *simConn
}

func (l *simLink) send(h hop, b []byte) {
	if p := &l.pipes[h]; !p.shut {
		p.buf = append(p.buf, b...)
	}
}

// shut ends a hop behind the bytes that are under way.
func (l *simLink) shut(hs ...hop) {
	for _, h := range hs {
		l.pipes[h].shut = true
	}
}

// lose ends a hop and with it a part of what was under way.
func (l *simLink) lose(h hop) {
	p := &l.pipes[h]
	p.buf = p.buf[:l.sim.rng.IntN(len(p.buf)+1)]
	p.shut = true
}

// movable reports whether a hop has something to deliver.
func (l *simLink) movable(h hop) bool {
	p := &l.pipes[h]
	switch {
	case p.over:
		return false
	case h == peerOut && l.s.Full(toRouter), h == routerOut && l.s.Full(toPeer):
		return false
	}
	return len(p.buf) > 0 || p.shut
}

// move delivers some of a hop's bytes: all, or half frames.
func (l *simLink) move(h hop) {
	p := &l.pipes[h]
	n := len(p.buf)
	if n > 0 && l.sim.chance(40) {
		n = 1 + l.sim.rng.IntN(n)
	}
	b := slices.Clone(p.buf[:n])
	p.buf = p.buf[n:]
	l.sim.note("%d %d moves %d", l.id, h, n)
	over := len(p.buf) == 0 && p.shut
	p.over = over
	switch h {
	case peerOut, routerOut:
		if l.s.Ended() {
			return
		}
		if h == peerOut {
			l.s.FromPeer(b)
		} else {
			l.s.FromRouter(b)
		}
		l.carry()
		if over {
			l.s.End("one side closed")
			l.carry()
		}
	case routerIn:
		l.far.receive(b)
		if over {
			l.sim.router.ended(l.far)
			l.shut(routerOut)
		}
	case peerIn:
		l.peer.receive(b)
		if over {
			l.peer.ended()
			l.shut(peerOut)
		}
	}
}

// carry takes what the session wrote, as its driver does.
func (l *simLink) carry() {
	for d := range l.s.outs {
		to := routerIn
		if direction(d) == toPeer {
			to = peerIn
		}
		segs, _ := l.s.outs[d].take()
		for _, b := range segs {
			l.send(to, b)
		}
	}
	if l.s.subs != nil && l.s.Unsent(0) {
		l.sim.post(l.id, feedEvent{})
	}
	if l.s.Ended() {
		l.shut(routerIn, peerIn, peerOut, routerOut)
		l.events = nil
	}
}

func (l *simLink) dead() bool { return l.pipes[routerIn].over && l.pipes[peerIn].over && l.s.Ended() }
