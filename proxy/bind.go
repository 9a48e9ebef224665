package proxy

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/admission"
	"scopeward/proxy/wire"
	"scopeward/table"
)

// bind is a stamped bind that the module has not answered.
type bind struct {
	open     *open
	admitted admission.Decision
	leg      leg // in the module's space
	route    table.RouteID
}

// bindBody is what of a marked route.bind is read.
type bindBody struct {
	at             leg
	target         target
	identity       identity
	kind, claimant string // of its principal
}

func readBind(in wire.Fields) (b bindBody, ok bool) {
	b.at = legOf(&in)
	b.target, b.identity, ok = readRoute(in)
	p := in.Child("principal")
	b.kind, b.claimant = p.Text("kind"), p.Text("module_id")
	return b, ok && in.OK && p.OK
}

// legOf reads the pair that a bind reserves.
func legOf(in *wire.Fields) leg {
	return leg{uint16(in.Uint("route_channel", 16)), uint32(in.Uint("epoch", 32))}
}

// fromRouter takes a Request of the router's. Only binds are read.
func (s *Session) fromRouter(f held) {
	o, ready, err := s.object(&s.lanes[toPeer], f)
	if !ready {
		return
	}
	if err != nil {
		s.write(toPeer, f.frame)
		return
	}
	if raw, ok := o.Get("op"); ok {
		if op, _ := wire.Text(raw); op == wire.OpRouteBind {
			s.bind(f, &o)
			return
		}
	}
	s.write(toPeer, f.frame)
}

// bind takes a route.bind. One that carries a mark is judged here and nowhere
// else: by now the router has checked target, identity and limits, its
// principal is on the frame, and this connection is the one that will serve.
//
// Every bind of this registration is answered: the router counts unanswered ones
// against the module.
func (s *Session) bind(f held, o *wire.Object) {
	in := wire.Fields{Object: *o, OK: true}
	caps, _ := o.Get("consumer_capabilities")
	marks := marksIn(caps)
	switch {
	case s.role != registered && s.registration > 0:
		// It was on its way when the module said Goodbye on channel 0: the router
		// gives it up there, and numbers its binds and pairs anew.
		return
	case s.role != registered:
		s.answerBind(f, legOf(&in), wire.CodeTargetUnavailable, "the module's connection has no registration")
		return
	case len(marks) == 0:
		s.unscoped(f, o)
		return
	}
	b, readable := readBind(in)
	if !readable {
		s.answerBind(f, b.at, string(admission.CodeUnsupported), "the bind is not as this sidecar knows it")
		return
	}
	op, ok := s.world.find(marks)
	if !ok {
		s.answerBind(f, b.at, string(admission.CodeUnsupported), "the scope's mark is not of an open under way")
		return
	}
	if what := op.differs(b); what != "" {
		s.world.take(op)
		s.answerBind(f, b.at, string(admission.CodeUnsupported), "the bind's "+what+" is not the marked open's")
		return
	}
	s.judgeBind(f, o, op, b)
}

// marksIn returns the strings of a bind's consumer_capabilities that begin as
// our marks do.
func marksIn(caps jsontext.Value) []string {
	if !bytes.Contains(caps, []byte(wire.MarkPrefix)) && bytes.IndexByte(caps, '\\') < 0 {
		return nil // without an escape a mark stands as it was written
	}
	var list, marks []string
	if caps != nil && json.Unmarshal(caps, &list, lenient) != nil {
		return []string{""} // no list of strings: a mark that is nobody's
	}
	for _, c := range list {
		if strings.HasPrefix(c, wire.MarkPrefix) {
			marks = append(marks, c)
		}
	}
	return marks
}

// differs names what of a bind is not its open's, "" when all is.
func (op *open) differs(b bindBody) string {
	switch {
	case b.target != op.target:
		return "target"
	case b.identity != op.identity:
		return "identity"
	case b.kind != op.claimed.Kind.String() || b.claimant != op.claimed.ModuleID:
		return "principal"
	}
	return ""
}

// judgeBind runs admission and sends the bind on, stamped, or answers it.
func (s *Session) judgeBind(f held, o *wire.Object, op *open, b bindBody) {
	ask := admission.Ask{
		Selector: op.selector, Opener: op.peer, Principal: op.claimed,
		Module: s.module.id, Provider: s.peer(), Capabilities: s.module.provides, Now: s.world.now(),
	}
	if a, ok := s.lanes[toPeer].asked.answers[AskRoster]; ok {
		ask.Roster = admission.NotConfigured
		if a.Configured {
			ask.Roster = admission.Configured
		}
	}
	d, took := s.world.admission(ask)
	if d.Verdict == admission.NeedRoster {
		// The answer, when it is known at once, is asked with.
		a, ok := s.ask(&s.lanes[toPeer], f, Question{Kind: AskRoster, Conn: s.id, ModuleID: op.selector.Owner.ModuleID})
		if !ok {
			return
		}
		ask.Roster = admission.NotConfigured
		if a.Configured {
			ask.Roster = admission.Configured
		}
		d, took = s.world.admission(ask)
	}
	if d.Verdict != admission.Admitted {
		s.world.take(op)
		s.record(Decision{Kind: Refused, Principal: op.claimed, Scope: op.scope(), Target: s.module.id, Rule: d.Rule, Code: string(d.Code), Message: d.Message, Opener: op.conn, Digest: d.Digest, Elapsed: took})
		s.answerBind(f, b.at, string(d.Code), d.Message)
		return
	}
	if !s.world.admit(op, d.Route) {
		s.world.Table.Release(d.Route)
		s.answerBind(f, b.at, string(admission.CodeUnsupported), "the scope's mark is not of an open under way")
		return
	}
	s.record(Decision{Kind: Admitted, Principal: op.claimed, Scope: d.Tag.ScopeID, Target: s.module.id, Rule: d.Rule, Opener: op.conn, Digest: d.Digest, Elapsed: took})
	if s.binds == nil {
		s.binds = make(map[uint64]*bind)
	}
	s.binds[f.Corr] = &bind{open: op, admitted: d, leg: b.at, route: d.Route}
	if op.caps == nil {
		o.Delete("consumer_capabilities")
	} else {
		o.Set("consumer_capabilities", op.caps)
	}
	o.Set("scope", d.Stamp)
	if d.Mode != "" {
		o.Set("call_mode", wire.MustMarshal(d.Mode))
	} else {
		o.Delete("call_mode")
	}
	s.write(toPeer, o.AppendFrame(nil, f.Header))
}

// unscoped sends an unmarked bind on: no scope, no mode but the sidecar's own.
func (s *Session) unscoped(f held, o *wire.Object) {
	declarer := s.module.provides.HasCallModes()
	if !declarer && o.Count("scope") == 0 && o.Count("call_mode") == 0 {
		s.write(toPeer, f.frame)
		return
	}
	o.Delete("scope")
	o.Delete("call_mode")
	if declarer {
		o.Set("call_mode", wire.MustMarshal(admission.DeriveCallMode(nil)))
	}
	s.write(toPeer, o.AppendFrame(nil, f.Header))
}

// answerBind answers the router's bind in the module's place. The router relays
// code and message to the opener as they stand and gives the reserved pair back.
// Nothing of it reaches the module, a Goodbye for the pair included.
func (s *Session) answerBind(f held, at leg, code, message string) {
	s.refuse(toRouter, f.Corr, code, message)
	s.bury(at, toPeer)
}

// ack takes a module's Response to a stamped bind. It is the commit, whatever
// its body says: the captured tag is compared and the route put into the index
// in one step, before the router can make the route live.
func (s *Session) ack(f held) {
	b := s.binds[f.Corr]
	delete(s.binds, f.Corr)
	verdict, took := s.world.commitment(b.admitted)
	d := Decision{Principal: b.open.claimed, Scope: b.admitted.Tag.ScopeID, Target: s.module.id, Opener: b.open.conn,
		Rule: verdict.Rule, Code: string(verdict.Code), Message: verdict.Message, Digest: b.admitted.Digest, Elapsed: took}
	switch {
	case verdict.Verdict == admission.Admitted:
		if s.serving == nil {
			s.serving = make(map[leg]table.RouteID)
		}
		s.serving[b.leg] = b.route
		s.world.commit(b.open)
		d.Kind = Committed
		s.record(d)
		s.write(toRouter, f.frame)
	case verdict.Code != "":
		s.world.take(b.open)
		d.Kind = Stale
		s.record(d)
		s.writeGoodbye(toPeer, b.leg)
		s.bury(b.leg, toRouter)
		s.answerBind(f, b.leg, d.Code, d.Message)
	default: // the opener is gone, and with it what was reserved: the module is told in the router's place
		s.world.take(b.open)
		s.writeGoodbye(toPeer, b.leg)
		s.bury(b.leg, toRouter)
		s.answerBind(f, b.leg, string(admission.CodeChanged), "the open that this bind belongs to has ended")
	}
}

// reject takes a module's own refusal of a stamped bind. It wins over a stale
// tag: the opener reads the module's code.
func (s *Session) reject(f held) {
	b := s.binds[f.Corr]
	delete(s.binds, f.Corr)
	s.world.Table.Release(b.route)
	s.world.take(b.open)
	s.record(Decision{Kind: Rejected, Principal: b.open.claimed, Scope: b.admitted.Tag.ScopeID, Target: s.module.id, Opener: b.open.conn, Digest: b.admitted.Digest})
	s.write(toRouter, f.frame)
}
