package operator

import (
	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// The kinds of events that are no kind of the proxy's decisions.
const (
	kindRecordAccepted = "record_accepted" // one record of an accepted call: created, replaced or updated
	kindRecordRefused  = "record_refused"  // one record of an accepted call
	kindMismatch       = "mismatch"        // an identity from a process that it was not given to
	kindEvicted        = "evicted"         // routes closed by hand
)

// ruleRecord is the rule of what one record of a call comes to; its code says
// which of the record's own checks decided.
const ruleRecord = "2 record"

// eventOf renders a decision. What belongs to an accepted call's records is not
// in it.
func eventOf(d proxy.Decision) *api.Event {
	e := &api.Event{
		AtMS: d.AtMS, Kind: d.Kind.String(), Conn: d.Conn, Opener: d.Opener,
		Target: d.Target, Rule: d.Rule, Code: d.Code, Message: d.Message,
		Routes: int64(d.Routes), DeadlineMS: d.Deadline, ElapsedUS: d.Elapsed.Microseconds(),
	}
	if d.Principal.Kind != 0 {
		e.Principal = principalText(d.Principal)
	}
	if d.Scope.Owner.Kind != 0 {
		e.Owner, e.Ref = principalText(d.Scope.Owner), d.Scope.Ref
		epoch := d.Scope.Epoch
		e.ScopeEpoch = &epoch
	}
	if d.Digest != (table.Digest{}) {
		e.Digest = d.Digest.String()
	}
	if d.Applied != nil {
		e.Call = callOf(d.Applied)
	}
	return e
}

func callOf(a *table.Applied) *api.Call {
	c := &api.Call{Generation: a.Generation, Ended: int64(len(a.Ended)), Expired: int64(len(a.Expired))}
	for _, r := range a.Results {
		switch r.Outcome {
		case table.Created:
			c.Created++
		case table.Replaced:
			c.Replaced++
		case table.Updated:
			c.Updated++
		case table.Unchanged:
			c.Unchanged++
		case table.Refused:
			c.Refused++
		}
	}
	return c
}

// eachRecord yields what an accepted call did with single records: those that it
// refused, in request order, then those whose content is new. event renders one.
func eachRecord(d proxy.Decision, yield func(kind, code string, event func() *api.Event)) {
	event := func(kind, ref string, epoch uint64) *api.Event {
		owner := principalText(d.Principal)
		return &api.Event{
			AtMS: d.AtMS, Kind: kind, Conn: d.Conn, Principal: owner,
			Owner: owner, Ref: ref, ScopeEpoch: &epoch, Rule: ruleRecord,
		}
	}
	for i := range d.Applied.Results {
		r := &d.Applied.Results[i]
		if r.Outcome != table.Refused {
			continue
		}
		yield(kindRecordRefused, string(r.Code), func() *api.Event {
			e := event(kindRecordRefused, r.Ref, r.Epoch)
			e.Code, e.Message = string(r.Code), r.Message
			return e
		})
	}
	contents := d.Applied.Contents()
	for i := range contents {
		c := &contents[i]
		yield(kindRecordAccepted, "", func() *api.Event {
			e := event(kindRecordAccepted, c.ID.Ref, c.ID.Epoch)
			e.Message, e.Digest = c.Outcome.String(), c.Record.Digest().String()
			return e
		})
	}
}

// mismatchEvent renders an identity that came from a process that it was not
// given to.
func mismatchEvent(m launch.Mismatch, now int64) *api.Event {
	e := &api.Event{
		AtMS: now, Kind: kindMismatch, Conn: m.Conn,
		Principal: principalText(table.ReservedPrincipal(m.ModuleID)),
		PID:       int64(m.Process.PID), Exe: m.Process.Exe,
		Rule: "attribution " + questionName(m.Kind), Message: m.Reason,
	}
	if m.Refused {
		e.Code = "refused"
	}
	return e
}

func questionName(k proxy.QuestionKind) string {
	if k == proxy.AskHello {
		return "hello"
	}
	return "identity"
}

// isRefusal says whether an event belongs among the refusals.
func isRefusal(kind string) bool {
	switch kind {
	case proxy.Refused.String(), proxy.Stale.String(), proxy.Rejected.String(), proxy.CallRefused.String(),
		proxy.PeerRefused.String(), kindRecordRefused:
		return true
	}
	return false
}
