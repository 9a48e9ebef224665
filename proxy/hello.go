package proxy

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/admission"
	"scopeward/proxy/wire"
)

// module is a registration as this connection made it. It counts from the
// HelloAck on.
type module struct {
	id       string
	nonce    string // secret; "" when none was presented
	provides admission.Capabilities
	updates  map[uint64]admission.Capabilities // catalog.update under way, by corr
}

// hello takes a Hello: remembered now, believed at the ack. What the peer sends
// behind it waits, since the ack decides how it is read.
func (s *Session) hello(f held) {
	l := &s.lanes[toRouter]
	o, err := wire.ParseObject(f.body())
	if err != nil {
		if first(f.body()) == '[' {
			s.refuse(toPeer, f.Corr, wire.CodeInvalidHello, "a Hello is a JSON object")
			return
		}
		s.forward(f, request{kind: plainRequest})
		return
	}
	if s.role == registered && !s.dismissed {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidHello, "this connection is registered; say Goodbye on channel 0 first")
		return
	}
	m, what := readHello(&o)
	if what != "" {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidHello, what)
		return
	}
	a, ok := s.ask(l, f, Question{Kind: AskHello, Conn: s.id, ModuleID: m.id, Nonce: m.nonce})
	if !ok {
		return
	}
	if a.Code != "" {
		s.record(Decision{Kind: PeerRefused, Target: m.id, Rule: "attribution", Code: a.Code, Message: a.Message})
		s.refuse(toPeer, f.Corr, a.Code, a.Message)
		return
	}
	s.module, s.dismissed = m, false
	s.role = helloSent
	s.forward(f, request{kind: helloRequest})
	l.parked = true
}

// readHello reads what of a Hello is ours. It says what keeps it from being
// read the same way by the router, "" when nothing does.
func readHello(o *wire.Object) (module, string) {
	var m module
	if o.Count("manifest") > 1 {
		return m, `"manifest" is given more than once`
	}
	raw, ok := o.Get("manifest")
	if ok && first(raw) != '{' {
		return m, `"manifest" is not an object`
	}
	if !ok {
		return m, "" // the router says so
	}
	manifest, err := wire.ParseObject(raw)
	if err != nil {
		return m, ""
	}
	if v, ok := manifest.Get("module_id"); ok {
		m.id, _ = wire.Text(v)
	}
	if v, ok := o.Get("launch_nonce"); ok {
		m.nonce, _ = wire.Text(v)
	}
	if v, ok := manifest.Get("capabilities"); ok && !wire.IsNull(v) {
		if first(v) != '{' {
			return m, `"capabilities" is not an object`
		}
		m.provides, _ = admission.ParseCapabilities(v) // malformed ones the router refuses
	}
	return m, ""
}

// lenient decodes what the router judges too: repeated members and broken
// strings are its to refuse.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// helloAnswered takes the router's answer to a Hello.
func (s *Session) helloAnswered(f held) {
	if f.Type != wire.HelloAck {
		s.module, s.role = module{}, client
		s.write(toPeer, f.frame)
		s.resume(&s.lanes[toRouter])
		return
	}
	s.role = registered
	s.world.launches.Registered(s.id, s.module.id, s.module.nonce)
	f.frame = advertise(f, "subc_ops", "subc_capabilities")
	s.write(toPeer, f.frame)
	s.resume(&s.lanes[toRouter])
}

// The ops and capabilities that the sidecar adds to what the router advertises
// (sections 4, 8 and 11).
var (
	servedOps          = []string{wire.OpScopeSync, wire.OpScopeApply, wire.OpScopeDescribe, wire.OpScopeSubscribe}
	servedCapabilities = []string{wire.CapScopes, wire.CapBindProofV1, wire.CapBindProofV2, wire.CapReplaceIfIdle, wire.CapScopeSubscribe}
)

// advertise adds what we serve to the lists of an answer, each once, and keeps
// every other member. ops is "" when the answer lists no module ops.
func advertise(f held, ops, capabilities string) []byte {
	o, err := wire.ParseObject(f.body())
	if err != nil {
		return f.frame
	}
	if ops != "" {
		extend(&o, ops, servedOps)
	}
	extend(&o, capabilities, servedCapabilities)
	return o.AppendFrame(nil, f.Header)
}

func extend(o *wire.Object, member string, with []string) {
	list, ok := o.Get(member)
	if ok && !wire.IsNull(list) && first(list) != '[' {
		return
	}
	for _, name := range with {
		if !bytes.Contains(list, []byte(`"`+name+`"`)) {
			list = withString(list, name)
		}
	}
	o.Set(member, list)
}

// moduleRequest takes a registered module's own request.
func (s *Session) moduleRequest(f held, o *wire.Object, op string) {
	if op != wire.OpCatalogUpdate {
		s.forward(f, request{kind: plainRequest})
		return
	}
	raw, ok := o.Get("capabilities")
	if !ok || wire.IsNull(raw) {
		s.forward(f, request{kind: plainRequest}) // absent or null keeps them
		return
	}
	if first(raw) != '{' || o.Count("capabilities") > 1 {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, `"capabilities" is one object`)
		return
	}
	if s.module.updates == nil {
		s.module.updates = make(map[uint64]admission.Capabilities)
	}
	s.module.updates[f.Corr], _ = admission.ParseCapabilities(raw)
	s.forward(f, request{kind: updateRequest})
}

// updated applies a catalog.update once the router has accepted it.
func (s *Session) updated(f held) {
	if caps, ok := s.module.updates[f.Corr]; ok {
		delete(s.module.updates, f.Corr)
		if f.Type == wire.Response {
			s.module.provides = caps
		}
	}
	s.write(toPeer, f.frame)
}
