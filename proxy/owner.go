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

// hugeCall is the body length in bytes from which a call is recorded after its
// answer, and tidied up after: body, reply and what decoding dropped are several
// times what the table keeps of it.
const hugeCall = 1 << 20

// tidyAfter is how long an owner's huge calls must have been over before the memory
// that they took is given back: the next one would ask for it again.
const tidyAfter = 50 * time.Millisecond

// long takes a module's long scope.sync or scope.apply by the op that it begins
// with: to read all of it is the decoder's work, and not this thread's. It is false
// for every other frame, and for one that the decoder did not take: what is wrong
// with it is for those to say who read it whole.
func (s *Session) long(f held) bool {
	if s.role != registered || len(f.frame) < largeCall {
		return false
	}
	if o, done := s.lanes[toRouter].asked.done.(outcome); done && o.malformed {
		return false
	}
	switch op := wire.LeadingOp(f.body()); op {
	case wire.OpScopeSync, wire.OpScopeApply:
		s.call(f, op)
		return true
	}
	return false
}

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
	refusal   *table.Refusal
	malformed bool   // refused by the decoder: the table has not seen it
	reply     []byte // the body, behind room for a header
	decision  Decision
}

// call takes a scope.sync or scope.apply.
func (s *Session) call(f held, op string) {
	l := &s.lanes[toRouter]
	var result outcome
	if l.asked.done != nil {
		result = l.asked.done.(outcome)
		if result.malformed {
			s.world.told(result)
		}
	} else {
		a, ok := s.ask(l, f, Question{Kind: AskStanding, Conn: s.id, ModuleID: s.module.id, Nonce: s.module.nonce})
		if !ok {
			return
		}
		claim := table.Claim{Peer: s.peer(), Owner: s.module.id, Launch: a.Launch, Current: a.Current}
		if len(f.frame) >= largeCall || s.world.journal != nil {
			s.job(l, f, func(f held, done func(any)) { s.world.callApart(s.id, claim, op, f, done) })
			return
		}
		result = s.world.call(s.id, claim, op, f.body())
		s.world.told(result)
	}
	if r := result.refusal; r != nil {
		s.refuse(toPeer, f.Corr, string(r.Code), r.Message)
		return
	}
	body := len(result.reply) - wire.HeaderLen
	wire.Header{Type: wire.Response, Corr: f.Corr, Len: uint32(body)}.Append(result.reply[:0])
	s.write(toPeer, result.reply)
}

// callApart is call off the drivers' threads. What a huge call did is told after its
// answer is on its way, and before that of the next: ten thousand records make as
// many lines.
func (w *World) callApart(id ConnID, claim table.Claim, op string, f held, done func(any)) {
	result := w.call(id, claim, op, f.body())
	if result.malformed {
		done(result)
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	if len(f.frame) < hugeCall {
		w.told(result)
		done(result)
		return
	}
	done(result)
	w.told(result)
	w.untidy()
}

// untidy has memory given back once no huge call has come for a while.
func (w *World) untidy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tidy == nil {
		w.tidy = time.AfterFunc(tidyAfter, func() { w.work(debug.FreeOSMemory) })
		return
	}
	w.tidy.Reset(tidyAfter)
}

// call decodes and applies an owner's call, posts its drains to their openers,
// and renders the reply. The drains are queued before the reply is.
func (w *World) call(id ConnID, claim table.Claim, op string, body []byte) outcome {
	start := time.Now()
	applied, malformed, refusal := w.apply(claim, op, body)
	d := Decision{Kind: Synced, Conn: id, Principal: table.ReservedPrincipal(claim.Owner), AtMS: w.now()}
	if op == wire.OpScopeApply {
		d.Kind = Applied
	}
	if refusal != nil {
		d.Kind, d.Rule, d.Code, d.Message = CallRefused, op, string(refusal.Code), refusal.Message
		d.Elapsed = time.Since(start)
		return outcome{refusal: refusal, malformed: malformed, decision: d}
	}
	w.deliver(applied.Drains)
	w.settle()
	reply := applied.AppendReply(make([]byte, wire.HeaderLen, wire.HeaderLen+applied.ReplyRoom()))
	d.Routes, d.Elapsed, d.Applied = len(applied.Drains), time.Since(start), applied
	return outcome{reply: reply, decision: d}
}

// told records what became of a call.
func (w *World) told(o outcome) {
	w.recorder.Record(o.decision)
	if a := o.decision.Applied; a != nil {
		w.report(a.Expired, a.Drains)
	}
}

// apply decodes a call and applies it. malformed says which of the two refused it.
func (w *World) apply(claim table.Claim, op string, body []byte) (a *table.Applied, malformed bool, refusal *table.Refusal) {
	if op == wire.OpScopeApply {
		call, refusal := table.DecodeApply(body)
		if refusal != nil {
			return nil, true, refusal
		}
		a, refusal = w.Table.Apply(claim, call, w.now())
		return a, false, refusal
	}
	call, refusal := w.Table.DecodeSync(claim.Owner, body)
	if refusal != nil {
		return nil, true, refusal
	}
	a, refusal = w.Table.Sync(claim, call, w.now())
	return a, false, refusal
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
	ref, ok := wire.Text(raw)
	if !ok {
		return k, `"ref" is not a string`
	}
	k.Ref = ref
	return k, ""
}
