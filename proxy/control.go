package proxy

import (
	"strings"

	"go.uber.org/zap"

	"scopeward/proxy/wire"
)

// judgeControl says the fate of a frame on channel 0. It changes state only
// when it lets the frame pass or drops it.
func (s *Session) judgeControl(l *lane, h wire.Header) fate {
	if s.world.pass {
		return pass
	}
	if l.dir == toRouter {
		return s.judgeFromPeer(h)
	}
	return s.judgeFromRouter(h)
}

func (s *Session) judgeFromPeer(h wire.Header) fate {
	switch h.Type {
	case wire.Request:
		return hold
	case wire.Hello:
		if !s.opening(h.Corr) {
			return hold
		}
	case wire.Goodbye:
		s.startOver(toRouter)
		return pass
	case wire.Response, wire.Error:
		if s.binds[h.Corr] != nil {
			return hold
		}
	case wire.Cancel:
		if s.subscription(h.Corr) != nil {
			return hold
		}
	}
	if s.opening(h.Corr) {
		// One corr names one thing: whatever draws an Error under an open's
		// corr could be taken for the open's end.
		if h.Type == wire.Cancel {
			return hold
		}
		s.world.log.Info("frame under an open's corr dropped", zap.Uint64("conn", s.id), zap.Stringer("type", h.Type))
		return drop
	}
	return pass
}

func (s *Session) judgeFromRouter(h wire.Header) fate {
	switch h.Type {
	case wire.Request:
		return hold
	case wire.HelloAck, wire.Response, wire.Error:
		r, known := s.requests[h.Corr]
		if known && r.kind != plainRequest || !known && h.Type == wire.Response && s.role != registered {
			return hold
		}
		delete(s.requests, h.Corr)
	case wire.StreamEnd:
		if s.requests[h.Corr].kind == plainRequest { // nothing else is held
			delete(s.requests, h.Corr)
		}
	case wire.Goodbye:
		s.startOver(toPeer)
	}
	return pass
}

// control takes a whole control frame that is ours to read.
func (s *Session) control(l *lane, f held) {
	if l.dir == toRouter {
		switch f.Type {
		case wire.Hello:
			s.hello(f)
		case wire.Response:
			s.ack(f)
		case wire.Error:
			s.reject(f)
		case wire.Cancel:
			if s.subscription(f.Corr) != nil {
				s.unsubscribe(f.Corr)
				return
			}
			s.refuse(toPeer, f.Corr, wire.CodeUnknownSubscription, "nothing that can be cancelled has this corr")
		default:
			s.request(f)
		}
		return
	}
	if f.Type == wire.Request {
		s.fromRouter(f)
		return
	}
	s.answer(f)
}

// request takes a Request of the peer's.
func (s *Session) request(f held) {
	if s.opening(f.Corr) { // before anything else: the router answers whatever this is
		s.refuseCorr(f)
		return
	}
	if s.long(f) {
		return
	}
	o, ready, err := s.object(&s.lanes[toRouter], f)
	if !ready {
		return
	}
	if err != nil {
		if first(f.body()) == '[' { // the router would take it for an object
			s.refuseShape(f)
			return
		}
		s.forward(f, request{kind: plainRequest})
		return
	}
	ours, op := ourOp(&o)
	if ours && o.Count("op") > 1 {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, `"op" is given more than once`)
		return
	}
	if _, taken := s.requests[f.Corr]; taken && s.role == client && op == wire.OpRouteOpen {
		s.refuseCorr(f)
		return
	}
	switch {
	case strings.HasPrefix(op, wire.ScopePrefix) && ours:
		s.owner(f, &o, op)
	case s.role == registered:
		s.moduleRequest(f, &o, op)
	case op == wire.OpRouteOpen:
		s.open(f, &o)
	case op == wire.OpServerDescribe:
		s.forward(f, request{kind: describeRequest})
	case op == wire.OpCatalogList:
		s.forward(f, request{kind: catalogRequest})
	default:
		s.forward(f, request{kind: plainRequest})
	}
}

// opening reports whether corr is an unanswered open's. Nothing else may have it:
// whoever lost the open would never learn its pair, and could not drain it.
func (s *Session) opening(corr uint64) bool { return s.requests[corr].kind == openRequest }

func (s *Session) refuseCorr(f held) {
	s.refuse(toPeer, f.Corr, wire.CodeInvalidRequest, "another request with this corr is unanswered; number each request anew")
}

// forward passes a request on and remembers that it is unanswered.
func (s *Session) forward(f held, r request) {
	s.asks(f.Corr, r, len(f.frame))
	s.write(toRouter, f.frame)
}

// asks remembers an unanswered request, and what it costs.
func (s *Session) asks(corr uint64, r request, size int) {
	s.requests[corr] = r
	s.units -= requestUnits - 1 + size/askedUnit
}

// refuseShape answers a body that is an array where an object belongs.
func (s *Session) refuseShape(f held) {
	code := wire.CodeInvalidControlBody
	if s.role == registered {
		code = wire.CodeUnsupportedControlFrame
	}
	s.refuse(toPeer, f.Corr, code, "a control body is a JSON object")
}

// ourOp returns the body's op, and whether any of its members called op names
// one that is ours to read.
func ourOp(o *wire.Object) (ours bool, op string) {
	for _, m := range o.Members {
		if m.Name != "op" {
			continue
		}
		name, ok := wire.Text(m.Raw)
		if !ok {
			continue
		}
		op = name
		switch {
		case name == wire.OpRouteOpen, name == wire.OpServerDescribe, name == wire.OpCatalogUpdate,
			strings.HasPrefix(name, wire.ScopePrefix):
			ours = true
		}
	}
	return ours, op
}

// answer takes the router's answer to a request that was remembered, or a
// Response to none.
func (s *Session) answer(f held) {
	r, known := s.requests[f.Corr]
	delete(s.requests, f.Corr)
	if !known {
		s.stray(f)
		return
	}
	switch r.kind {
	case openRequest:
		s.opened(f, r)
	case describeRequest:
		if f.Type == wire.Response {
			f.frame = advertise(f, "", "capabilities")
		}
		s.write(toPeer, f.frame)
	case helloRequest:
		s.helloAnswered(f)
	case updateRequest:
		s.updated(f)
	case catalogRequest:
		s.write(toPeer, withoutHelpers(f))
	default:
		s.write(toPeer, f.frame)
	}
}

// first returns the first byte of b that is no space, 0 when there is none.
func first(b []byte) byte {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}
