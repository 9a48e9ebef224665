package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/admission"
	"scopeward/proxy/wire"
	"scopeward/table"
)

// open is a marked open on its way through the router. The opener's session
// makes it; the session of the module that is asked to bind takes it by its
// mark, once. What it says never changes; what became of it is the world's, and
// guarded by the world's lock.
type open struct {
	mark     string // secret
	conn     ConnID
	peer     table.Peer
	corr     uint64
	selector admission.Selector
	target   target
	identity identity
	claimed  table.Principal
	caps     jsontext.Value // consumer_capabilities as sent; nil when absent
	turn     *turn

	// Guarded by World.mu.
	state openState
	route table.RouteID // once admitted
}

type openState uint8

const (
	openSent     openState = iota + 1 // no bind with its mark was seen
	openTaken                         // a bind took the mark; it is being judged or was refused
	openAdmitted                      // the stamped bind is with the module
	openLive                          // committed
	openGone                          // the opener is gone, or the open has ended
)

// target is a route's target as the router names it.
type target struct{ kind, module, service string }

// identity is what of an open's identity must be the same on its bind. The
// router resolves project_root, so that is not compared.
type identity struct {
	harness, session string
	project          string
	hasProject       bool
}

// readRoute reads what an open and its bind say alike.
func readRoute(in wire.Fields) (t target, i identity, ok bool) {
	f := in.Child("target")
	t = target{f.Text("kind"), f.Text("module_id"), f.Text("service_id")}
	ok = f.OK
	f = in.Child("identity")
	i = identity{harness: f.Text("harness"), session: f.Text("session"), project: f.Text("project_id")}
	raw, given := f.Get("project_id")
	i.hasProject = given && !wire.IsNull(raw)
	return t, i, ok && f.OK
}

// open takes a client's route.open. One without a scope is forwarded byte for
// byte; one with a scope is marked.
func (s *Session) open(f held, o *wire.Object) {
	if what := openShape(o); what != "" {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, what)
		return
	}
	claim, named := o.Get("consumer_identity")
	if !named || wire.IsNull(claim) {
		s.openAs(f, o, table.Principal{Kind: table.Direct})
		return
	}
	id, ok := readConsumer(claim)
	if !ok {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, `"consumer_identity" is {module_id, launch_nonce}`)
		return
	}
	a, ok := s.ask(&s.lanes[toRouter], f, Question{Kind: AskIdentity, Conn: s.id, ModuleID: id.module, Nonce: id.nonce})
	if !ok {
		return
	}
	claimed := table.ReservedPrincipal(id.module)
	if a.Code != "" {
		s.record(Decision{Kind: PeerRefused, Principal: claimed, Rule: "attribution", Code: a.Code, Message: a.Message})
		s.refuse(toPeer, f.Corr, a.Code, a.Message)
		return
	}
	s.openAs(f, o, claimed)
}

type consumer struct{ module, nonce string } // the nonce is a secret

func readConsumer(raw jsontext.Value) (consumer, bool) {
	f := wire.ReadFields(raw)
	return consumer{f.Text("module_id"), f.Text("launch_nonce")}, f.OK
}

// openAs goes on once the claimed principal has been looked at.
func (s *Session) openAs(f held, o *wire.Object, claimed table.Principal) {
	caps, given := o.Get("consumer_capabilities")
	var list []string
	if given && !wire.IsNull(caps) {
		if json.Unmarshal(caps, &list) != nil {
			list = nil // not a list of strings: the router says so
		}
		for _, c := range list {
			if strings.HasPrefix(c, wire.MarkPrefix) {
				s.refuse(toPeer, f.Corr, wire.CodeInvalidRequest, `"consumer_capabilities" may not begin with `+wire.MarkPrefix)
				return
			}
		}
	}
	scope, scoped := o.Get("scope")
	if !scoped || wire.IsNull(scope) {
		s.forward(f, request{kind: openRequest})
		return
	}
	op := &open{conn: s.id, peer: s.peer(), corr: f.Corr, claimed: claimed, state: openSent}
	if given {
		op.caps = append(jsontext.Value(nil), caps...)
	}
	selector, err := admission.ParseSelector(scope)
	if err != nil {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, `"scope": `+err.Error())
		return
	}
	op.selector = selector
	var ok bool
	if op.target, op.identity, ok = readRoute(wire.Fields{Object: *o}); !ok || given && !wire.IsNull(caps) && list == nil && !emptyList(caps) {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, `"target", "identity" or "consumer_capabilities" is not as route.open defines it`)
		return
	}
	if !s.turnFor(&s.lanes[toRouter], f, op.target.module) {
		return
	}
	op.turn, s.turn = s.turn, nil
	op.mark = newMark()
	o.Delete("scope")
	o.Set("consumer_capabilities", withString(caps, op.mark))
	frame := o.AppendFrame(nil, f.Header)
	if len(frame)-wire.HeaderLen > wire.MaxBody {
		s.world.callTurns(s.world.turns.give(op.turn))
		s.refuse(toPeer, f.Corr, wire.CodeInvalidRequest, "the open is too long to carry a scope")
		return
	}
	s.world.send(op)
	s.asks(f.Corr, request{kind: openRequest, open: op}, len(f.frame))
	s.marked++
	s.write(toRouter, frame)
}

// withString adds a string that needs no escape to a list, null or nothing.
func withString(list jsontext.Value, s string) jsontext.Value {
	b := make([]byte, 0, len(list)+len(s)+len(`["",]`))
	if first(list) == '[' {
		b = append(b, bytes.TrimRight(list[:len(list)-1], " \t\r\n")...)
	}
	switch {
	case len(b) == 0:
		b = append(b, '[')
	case b[len(b)-1] != '[':
		b = append(b, ',')
	}
	b = append(append(append(b, '"'), s...), '"')
	return append(b, ']')
}

// openShape says what keeps an open from being read the same way by the router
// and by us, "" when nothing does. The router takes arrays for objects.
func openShape(o *wire.Object) string {
	for _, name := range []string{"scope", "identity", "target", "consumer_identity", "consumer_capabilities"} {
		if o.Count(name) > 1 {
			return `"` + name + `" is given more than once`
		}
	}
	for _, name := range []string{"identity", "target", "consumer_identity"} {
		if raw, ok := o.Get(name); ok && first(raw) != '{' && !(name == "consumer_identity" && wire.IsNull(raw)) {
			return `"` + name + `" is not an object`
		}
	}
	for _, m := range o.Members {
		if !utf8.Valid(m.Raw) || !utf8.ValidString(m.Name) {
			return "the body is not valid UTF-8"
		}
	}
	return ""
}

func emptyList(raw jsontext.Value) bool {
	var list []string
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

// newMark makes the single-use secret that ties a bind to its open.
func newMark() string {
	var x [16]byte
	rand.Read(x[:]) // never fails
	return wire.MarkPrefix + hex.EncodeToString(x[:])
}

// opened takes the router's answer to an open.
func (s *Session) opened(f held, r request) {
	if r.open == nil {
		s.write(toPeer, f.frame)
		return
	}
	s.marked--
	if f.Type != wire.Response {
		s.giveUp(r.open)
		s.write(toPeer, f.frame)
		return
	}
	at, ok := routeOf(f.body())
	route, live := s.world.finish(r.open)
	if !ok || !live {
		s.world.Table.Release(route)
		delete(s.early, route)
	}
	switch {
	case !ok:
		s.write(toPeer, f.frame)
	case !live:
		// No bind of ours carried it: the target is not behind us, and an
		// unscoped route is never the answer to a scoped open (section 8).
		s.writeGoodbye(toRouter, at)
		s.bury(at, toRouter, toPeer)
		s.record(Decision{Kind: Refused, Principal: r.open.claimed, Scope: r.open.scope(), Target: r.open.target.module,
			Rule: "8 target not behind the sidecar", Code: string(admission.CodeUnsupported)})
		s.refuse(toPeer, f.Corr, string(admission.CodeUnsupported), "the target does not read scopes: it is not connected through scopeward")
	default:
		s.settle(f, at, liveRoute{route, r.open.target.module, r.open.scope()})
	}
}

// settle delivers a committed route's answer and then whatever came for it
// before its pair was known.
func (s *Session) settle(f held, at leg, r liveRoute) {
	if s.routes == nil {
		s.routes, s.legs = make(map[leg]liveRoute), make(map[table.RouteID]leg)
	}
	s.routes[at], s.legs[r.id] = r, at
	s.write(toPeer, f.frame)
	if d, ok := s.early[r.id]; ok {
		delete(s.early, r.id)
		s.drain([]table.Drain{d})
		return
	}
	if s.parted[at] {
		delete(s.parted, at)
		s.forget(at)
		s.world.Table.Release(r.id)
		s.writeGoodbye(toRouter, at)
	}
	if s.marked == 0 {
		s.parted = nil
	}
}

// giveUp ends an open and gives back what it reserved.
func (s *Session) giveUp(op *open) {
	if route, _ := s.world.finish(op); route != 0 {
		s.world.Table.Release(route)
		delete(s.early, route)
	}
}

// stray takes a Response that answers nothing. One that would open a route is
// the answer to an open that we no longer hold: it is not delivered, and its
// route is closed. That of an open which a Goodbye on channel 0 has ended is gone,
// and its pair may be another's.
func (s *Session) stray(f held) {
	marked, crossed := s.crossed[f.Corr]
	delete(s.crossed, f.Corr)
	if crossed && !marked {
		s.write(toPeer, f.frame)
		return
	}
	o, err := wire.ParseObject(f.body())
	if err == nil {
		if raw, ok := o.Get("op"); ok {
			if op, _ := wire.Text(raw); op == wire.OpRouteOpen {
				if at, ok := routeOf(f.body()); ok && !crossed {
					s.writeGoodbye(toRouter, at)
				}
				return
			}
		}
	}
	s.write(toPeer, f.frame)
}

// routeOf reads the pair that a route.open response gives its opener.
func routeOf(body []byte) (leg, bool) {
	f := wire.ReadFields(body)
	at := leg{uint16(f.Uint("route_channel", 16)), uint32(f.Uint("route_epoch", 32))}
	return at, f.OK && at.channel != 0
}

func (op *open) scope() table.ScopeID {
	id := table.ScopeID{Key: table.Key{Owner: op.selector.Owner, Ref: op.selector.Ref}}
	if op.selector.Epoch != nil {
		id.Epoch = *op.selector.Epoch
	}
	return id
}
