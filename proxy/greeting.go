package proxy

import (
	"bytes"
	"net"
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
	hup    bool
	hand   *handshake.Greeting
	rest   []byte // frames that came behind the proof
	due    time.Time
}

// accepted starts a connection's handshake, unless too many are in theirs.
func (s *Server) accepted(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		_ = c.Close()
		return
	}
	select {
	case s.slots <- struct{}{}:
	default: // as the router does at its limit
		_ = c.Close()
		return
	}
	s.mu.Lock()
	w := s.world
	if s.closed || w == nil {
		s.mu.Unlock()
		<-s.slots
		_ = c.Close()
		return
	}
	g := &greeting{
		server: s, world: w, id: s.next.Add(1), fd: -1,
		loop: s.loops[1+s.turn.Add(1)%(Loops-1)],
		hand: handshake.NewGreeting(handshake.Params{Key: s.p.Key, DaemonID: s.p.DaemonID, DaemonVer: w.up.DaemonVer}),
		due:  time.Now().Add(handshake.Timeout),
	}
	s.greetings[g] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		s.p.Peers.Accepted(g.id, tcp)
		fd, err := detach(tcp)
		_ = tcp.Close()
		if err != nil {
			g.end()
		} else if !g.loop.post(func() { g.loop.welcome(g, fd) }) {
			unix.Close(fd)
			g.end()
		}
	}()
}

// end closes a greeting that leads to no session.
func (g *greeting) end() {
	if g.fd >= 0 {
		unix.Close(g.fd)
		g.fd = -1
	}
	g.leave()
	g.server.p.Peers.Closed(g.id)
}

// leave gives the place among those who have no session yet back, once.
func (g *greeting) leave() {
	s := g.server
	s.mu.Lock()
	_, in := s.greetings[g]
	delete(s.greetings, g)
	s.mu.Unlock()
	if in {
		<-s.slots
	}
}

// welcome waits for a connection's first message.
func (l *Loop) welcome(g *greeting, fd int) {
	g.fd = fd
	l.greetings[int32(fd)] = g
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
		l.begin(g, up)
		return
	}
	g.server.work(func() {
		up, err := dial(g.world.up, role)
		if err != nil {
			g.server.p.Log.Warn("the router did not take a connection", zap.Uint64("conn", g.id), zap.Error(err))
			l.post(func() { l.dismiss(g, "the router did not take it") })
			return
		}
		if !l.post(func() { l.begin(g, up) }) {
			unix.Close(up)
		}
	})
}

// begin makes a session of a greeting and its upstream connection.
func (l *Loop) begin(g *greeting, up int) {
	if g.fd < 0 {
		unix.Close(up)
		return
	}
	p := g.server.pair(g, up)
	if p == nil {
		unix.Close(up)
		l.dismiss(g, "the router is gone")
		return
	}
	delete(l.greetings, int32(g.fd))
	g.fd = -1
	g.leave()
	l.adopt(p)
	peer := &p.sides[toRouter]
	if peer.fd < 0 {
		return
	}
	peer.readable, peer.hup = true, g.hup
	l.again(peer)
	if len(g.rest) > 0 {
		p.session.FromPeer(g.rest)
		l.carry(p)
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
