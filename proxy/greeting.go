package proxy

import (
	"bytes"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"scopeward/proxy/handshake"
)

// greeting is an accepted connection up to the start of its session: first its
// peer proves that it holds the key, then it gets an upstream connection. Its
// loop owns it.
type greeting struct {
	server *Server
	world  *World
	id     ConnID
	loop   *Loop
	fd     int // -1 when it is over
	up     int // its upstream connection, -1 before there is one
	hup    bool
	socket Socket
	hand   *handshake.Greeting
	rest   []byte // frames that came behind the proof
	due    time.Time
	asked  bool // its peer is being attributed, or was

	// Under the server's lock: whoever comes last, the end of its peer's attribution
	// or what needs it, goes on.
	known bool // its peer has been attributed, as far as it can be
	over  bool
	waits bool // it is authenticated
}

// attribute learns who a greeting's peer is.
func (g *greeting) attribute() {
	s := g.server
	if s.p.Peers.Accepted(g.id, g.socket, false) {
		g.named()
		return
	}
	s.work(func() {
		s.p.Peers.Accepted(g.id, g.socket, true)
		if waits, over := g.named(); over {
			g.leave()
		} else if waits {
			g.loop.post(func() { g.loop.begin(g) })
		}
	})
}

// named notes that a greeting's peer is attributed, and says what waited for it.
func (g *greeting) named() (waits, over bool) {
	s := g.server
	s.mu.Lock()
	defer s.mu.Unlock()
	g.known = true
	return g.waits, g.over
}

// waitsForName reports whether a greeting's attribution lasts. Its end begins the
// session then.
func (g *greeting) waitsForName() bool {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.waits = !g.known
	return g.waits
}

// end closes a greeting that leads to no session.
func (g *greeting) end() {
	unix.Close(g.fd)
	g.fd = -1
	if g.up >= 0 {
		unix.Close(g.up)
	}
	g.loop.load.Add(-1)
	s := g.server
	s.mu.Lock()
	delete(s.greetings, g)
	g.over = true
	known := g.known
	s.mu.Unlock()
	switch {
	case !g.asked:
		<-s.slots
	case known:
		g.leave()
	}
}

// leave says that nothing more will be asked of a greeting that is over, and
// gives its place among those who have no session yet back.
func (g *greeting) leave() {
	<-g.server.slots
	g.server.p.Peers.Closed(g.id)
}

// welcome waits for a connection's first message.
func (l *Loop) welcome(g *greeting) {
	if g.fd < 0 {
		return
	}
	l.greetings[int32(g.fd)] = g
	l.line = append(l.line, g)
	if err := l.watch(g.fd); err != nil || g.world != g.server.World() {
		l.dismiss(g, "the router is gone")
	}
}

// dismiss ends a greeting.
func (l *Loop) dismiss(g *greeting, why string) {
	if g.fd < 0 {
		return
	}
	delete(l.greetings, int32(g.fd))
	g.server.p.Log.Debug("handshake refused", zap.Uint64("conn", g.id), zap.String("why", why))
	g.end()
}

// greet reads what a peer says in its handshake.
func (l *Loop) greet(g *greeting) {
	for !g.hand.Done() {
		n, err := l.kernel.read(g.fd, l.buf)
		switch {
		case n > 0:
			reply, rest, err := g.hand.Feed(l.buf[:n])
			if err != nil {
				l.dismiss(g, err.Error())
				return
			}
			if len(reply) > 0 {
				if sent, _ := l.kernel.write(g.fd, reply); sent < len(reply) {
					l.dismiss(g, "its peer takes no proof")
					return
				}
				if !g.asked { // while the peer works on its proof
					g.asked = true
					g.attribute()
				}
			}
			if g.hand.Done() {
				g.rest = bytes.Clone(rest)
				l.authenticated(g)
				return
			}
			if n < len(l.buf) && !g.hup {
				return // the edge comes again with more
			}
		case err == unix.EAGAIN:
			return
		case err == unix.EINTR:
		default:
			l.dismiss(g, "the peer closed")
			return
		}
	}
}

// authenticated finds an upstream connection for a peer that holds the key.
func (l *Loop) authenticated(g *greeting) {
	role := g.hand.Hello().Role
	if up, ok := g.world.spares.take(role); ok {
		g.up = up
		l.begin(g)
		return
	}
	g.server.work(func() {
		up, err := dial(g.world.up, role)
		if err != nil {
			g.server.p.Log.Warn("the router did not take a connection", zap.Uint64("conn", g.id), zap.Error(err))
			l.post(func() { l.dismiss(g, "the router did not take it") })
			return
		}
		ready := func() {
			if g.fd < 0 {
				unix.Close(up)
				return
			}
			g.up = up
			l.begin(g)
		}
		if !l.post(ready) {
			unix.Close(up)
		}
	})
}

// begin makes a session of a greeting and its upstream connection, once its peer
// has been attributed.
func (l *Loop) begin(g *greeting) {
	if g.fd < 0 || g.waitsForName() {
		return
	}
	p := g.server.pair(g)
	if p == nil {
		l.dismiss(g, "the router is gone")
		return
	}
	delete(l.greetings, int32(g.fd))
	g.fd, g.up = -1, -1
	l.adopt(p)
	peer := &p.sides[toRouter]
	if peer.fd < 0 {
		return
	}
	peer.readable, peer.hup = true, g.hup
	l.again(peer)
	if len(g.rest) > 0 {
		p.session.FromPeer(g.rest)
		l.carry(p, toRouter)
	}
}

// runGreetings ends the handshakes that take too long. Those who wait for the
// router have authenticated, and their dial has bounds of its own.
func (l *Loop) runGreetings() {
	for len(l.line) > 0 {
		g := l.line[0]
		if g.fd >= 0 && !g.hand.Done() {
			if time.Now().Before(g.due) {
				return
			}
			l.dismiss(g, "it took too long")
		}
		l.line[0] = nil
		l.line = l.line[1:]
	}
	l.line = nil
}
