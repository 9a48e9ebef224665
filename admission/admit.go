package admission

import "scopeward/table"

// sight is what a decision saw under the lock: the stamp of the live record, if
// there was one, and which rule decided. A record is never changed, so its parts
// may be kept.
type sight struct {
	ruling
	rule   rule
	stamp  table.Stamp
	tag    table.Tag
	digest table.Digest
}

// look judges a against s. It stops at the first rule that does not pass.
func look(a *ask, s table.State, order []rule) (seen sight) {
	if s.Live != nil {
		seen.stamp, seen.tag, seen.digest = s.Live.Stamp(), s.Live.Tag(), s.Live.Record.Digest()
	}
	for _, r := range order {
		seen.rule, seen.ruling = r, r.judge(a, s)
		if seen.verdict != Admitted {
			break
		}
	}
	return seen
}

// reservation is what an admitted bind holds.
func (a *ask) reservation() table.Reservation {
	return table.Reservation{
		Scope:     table.Key{Owner: a.Selector.Owner, Ref: a.Selector.Ref},
		Opener:    a.Opener,
		Principal: a.Principal,
		Module:    a.Module,
		Provider:  a.Provider,
		Hold:      a.Selector.HoldPresence,
	}
}

// Admit decides about a bind and, when it may go on, reserves epoch usage and
// captures the tag, all in one step under the table's lock (section 4). The
// caller settles an admitted bind with [Commit] or [table.Table.Release], once.
//
// An opener or a provider that is gone by now is refused [CodeUnsupported].
func Admit(t *table.Table, a Ask) Decision {
	p, order := prepare(a), rules()
	var seen sight
	route, tag, ok := t.Reserve(p.reservation(), func(s table.State) bool {
		seen = look(p, s, order)
		return seen.verdict == Admitted
	})
	if seen.verdict == Admitted && !ok {
		// It goes nowhere rather than on without its scope (section 8).
		return Decision{Code: CodeUnsupported, Rule: "4 reservation", Message: "the opener or the target is gone"}
	}
	d := p.decision(seen)
	if ok {
		d.Route, d.Tag = route, tag
	}
	return d
}

// Explain decides as [Admit] does and reserves nothing. The ask needs no opener
// and no provider.
func Explain(t *table.Table, a Ask) Decision {
	p, order := prepare(a), rules()
	var seen sight
	t.Reserve(p.reservation(), func(s table.State) bool {
		seen = look(p, s, order)
		return false
	})
	return p.decision(seen)
}

// decision renders what was seen, off the lock.
func (a *ask) decision(seen sight) Decision {
	d := Decision{Verdict: seen.verdict, Code: seen.code, Rule: seen.rule.name, Digest: seen.digest}
	switch seen.verdict {
	case Refused:
		d.Message = seen.rule.say(a, seen)
	case Admitted:
		d.Rule, d.Tag = "4 admission", seen.tag
		d.Stamp = renderStamp(seen.stamp, a.Capabilities)
		d.Mode = ModeFor(a.Capabilities, &seen.stamp.Attributes)
	}
	return d
}
