package proxy

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// largeCall is the body length in bytes from which an owner's call is decoded
// and applied off the driver's thread. Below it, the hand-over costs more than
// the work. With a journal every call is: it may wait for a disk.
const largeCall = 16 << 10

// hugeCall is the body length from which a call is tidied up after: body, reply
// and what decoding dropped are several times what the table keeps of it.
const hugeCall = 1 << 20

// owner takes a request whose op begins with scope. It is answered here and
// never forwarded.
func (s *Session) owner(f held, o *wire.Object, op string) {
	if s.role != registered {
		s.record(Decision{Kind: CallRefused, Rule: "11 not_registered", Code: wire.CodeNotRegistered})
		s.refuse(toPeer, f.Corr, wire.CodeNotRegistered, "only a registered module may send "+op)
		return
	}
	switch op {
	case wire.OpScopeSync, wire.OpScopeApply:
		s.call(f, op)
	case wire.OpScopeDescribe:
		s.describe(f, o)
	case wire.OpScopeSubscribe:
		s.subscribe(f)
	default:
		s.refuse(toPeer, f.Corr, wire.CodeUnsupportedControlFrame, "no such scope operation")
	}
}

// outcome is what became of a scope.sync or scope.apply.
type outcome struct {
	refusal *table.Refusal
	reply   []byte
}

// call takes a scope.sync or scope.apply.
func (s *Session) call(f held, op string) {
	l := &s.lanes[toRouter]
	var result outcome
	if l.asked.done != nil {
		result = l.asked.done.(outcome)
	} else {
		a, ok := s.ask(l, f, Question{Kind: AskStanding, Conn: s.id, ModuleID: s.module.id, Nonce: s.module.nonce})
		if !ok {
			return
		}
		claim := table.Claim{Peer: s.peer(), Owner: s.module.id, Launch: a.Launch, Current: a.Current}
		if len(f.frame) < largeCall && s.world.journal == nil {
			result = s.world.call(s.id, claim, op, f.body())
		} else {
			s.job(l, f, func(f held) any {
				if len(f.frame) >= hugeCall {
					defer s.world.work(debug.FreeOSMemory)
				}
				return s.world.call(s.id, claim, op, f.body())
			})
			return
		}
	}
	if r := result.refusal; r != nil {
		s.refuse(toPeer, f.Corr, string(r.Code), r.Message)
		return
	}
	s.write(toPeer, wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: f.Corr}, result.reply))
}

// call decodes and applies an owner's call, posts its drains to their openers,
// and renders the reply. The drains are queued before the reply is.
func (w *World) call(id ConnID, claim table.Claim, op string, body []byte) outcome {
	start := time.Now()
	applied, refusal := w.apply(claim, op, body)
	d := Decision{Kind: Synced, Conn: id, Principal: table.ReservedPrincipal(claim.Owner), AtMS: w.now()}
	if op == wire.OpScopeApply {
		d.Kind = Applied
	}
	if refusal != nil {
		d.Kind, d.Rule, d.Code, d.Message = CallRefused, op, string(refusal.Code), refusal.Message
		d.Elapsed = time.Since(start)
		w.recorder.Record(d)
		return outcome{refusal: refusal}
	}
	w.deliver(applied.Drains)
	w.settle()
	reply := applied.AppendReply(nil)
	d.Routes, d.Elapsed, d.Applied = len(applied.Drains), time.Since(start), applied
	w.recorder.Record(d)
	w.report(applied.Expired, applied.Drains)
	return outcome{reply: reply}
}

func (w *World) apply(claim table.Claim, op string, body []byte) (*table.Applied, *table.Refusal) {
	if op == wire.OpScopeApply {
		call, refusal := table.DecodeApply(body)
		if refusal != nil {
			return nil, refusal
		}
		return w.Table.Apply(claim, call, w.now())
	}
	call, refusal := w.Table.DecodeSync(claim.Owner, body)
	if refusal != nil {
		return nil, refusal
	}
	return w.Table.Sync(claim, call, w.now())
}

// Sweep ends every scope whose deadline has passed and drains its routes. A
// timer only prompts it: the wall clock decides.
func (w *World) Sweep() {
	w.callTurns(w.turns.overdue())
	if !w.Table.HasDeadlines() {
		return
	}
	expired, drains := w.Table.Sweep(w.now())
	w.deliver(drains)
	w.report(expired, drains)
}

// report records each expiry and each drained route.
func (w *World) report(expired []table.Expiry, drains []table.Drain) {
	for _, e := range expired {
		w.recorder.Record(Decision{Kind: Expired, AtMS: w.now(), Scope: e.ID, Deadline: int64(e.Deadline), Routes: e.Routes, Rule: "2 expiry", Digest: e.Digest})
	}
	for _, d := range drains {
		w.recorder.Record(Decision{Kind: Drained, AtMS: w.now(), Conn: d.Opener.Conn, Principal: d.Principal, Scope: d.Scope, Target: d.Module, Rule: "5a drain", Code: d.Reason.String(), Routes: 1, Digest: d.Digest})
	}
}

// describe takes a scope.describe. Any registered module may ask it.
func (s *Session) describe(f held, o *wire.Object) {
	key, what := describeKey(o)
	if what != "" {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, what)
		return
	}
	d := s.world.Table.Describe(key)
	configured := d.OwnerSynced // one that has synced is configured
	if !configured && key.Owner.Kind == table.Reserved {
		a, ok := s.ask(&s.lanes[toRouter], f, Question{Kind: AskRoster, Conn: s.id, ModuleID: key.Owner.ModuleID})
		if !ok {
			return
		}
		configured = a.Configured
	}
	body := d.AppendReply(nil, configured)
	s.write(toPeer, wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: f.Corr}, body))
}

// describeKey reads {owner, ref}. Unknown members are ignored there, as they
// are at the top of every scope call.
func describeKey(o *wire.Object) (table.Key, string) {
	var k table.Key
	for _, name := range []string{"owner", "ref"} {
		if n := o.Count(name); n != 1 {
			return k, fmt.Sprintf("%q is given %d times", name, n)
		}
	}
	raw, _ := o.Get("owner")
	if err := json.Unmarshal(raw, &k.Owner); err != nil {
		return k, `"owner" is not a principal`
	}
	raw, _ = o.Get("ref")
	ref, ok := text(raw)
	if !ok {
		return k, `"ref" is not a string`
	}
	k.Ref = ref
	return k, ""
}
