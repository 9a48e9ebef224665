package admission

import "scopeward/table"

// ask is an [Ask] made ready for the lock: whatever costs time is done.
type ask struct {
	Ask
	proof proofDigest // of the selector's proof, when a rule can ask for it
}

func prepare(a Ask) *ask {
	p := &ask{Ask: a}
	if !a.Principal.Reserved() && a.Selector.BindProof != nil {
		p.proof = digestProof(*a.Selector.BindProof)
	}
	return p
}

// ruling is what a rule says of an ask. The zero value is a refusal without a
// code, which no rule gives.
type ruling struct {
	verdict Verdict
	code    Code
}

func pass() ruling            { return ruling{verdict: Admitted} }
func refuse(code Code) ruling { return ruling{code: code} }

// rule is one rule of admission. judge runs under the table's lock: it changes
// nothing, keeps nothing and allocates nothing. From the third on a rule finds a
// live record. say renders its refusal afterwards, from what was seen.
type rule struct {
	name  string // the contract's section, then the rule
	judge func(*ask, table.State) ruling
	say   func(*ask, sight) string
}

// rules are the rules in the contract's order, a retryable refusal before the
// terminal ones that it could turn into. The router's own checks (target,
// identity, limits) came before them; the reservation comes after.
func rules() []rule {
	return []rule{
		{"4 epoch named", epochNamed, sayEpochNamed},
		{"4 owner synced", ownerSynced, sayOwnerSynced},
		{"4 ref live", refLive, sayRefLive},
		{"4 epoch live", epochLive, sayEpochLive},
		{"2 deadline ahead", deadlineAhead, sayDeadlineAhead},
		{"4 carrier", carrier, sayCarrier},
		{"4 bind proof", bindProof, sayBindProof},
		{"4 flow gate", flowGate, sayFlowGate},
		{"4 run gate", runGate, sayRunGate},
	}
}

// epochNamed is section 4: every opener names the epoch, the owner included, so
// that an old call is never carried into a session that reused the ref.
func epochNamed(a *ask, _ table.State) ruling {
	if a.Selector.Epoch == nil {
		return refuse(CodeEpochRequired)
	}
	return pass()
}

// ownerSynced is section 4: before an owner's first sync of this incarnation its
// open may come true later, which is so exactly when it is a configured module.
func ownerSynced(a *ask, s table.State) ruling {
	switch {
	case !a.Selector.Owner.Reserved():
		return refuse(CodeNotLive)
	case s.Synced:
		return pass()
	case a.Roster == Unknown:
		return ruling{verdict: NeedRoster}
	case a.Roster == Configured:
		return refuse(CodeNotSynced)
	}
	return refuse(CodeNotLive)
}

// refLive is section 4: the owner has synced, and its set is all there is.
func refLive(_ *ask, s table.State) ruling {
	if s.Live == nil {
		return refuse(CodeNotLive)
	}
	return pass()
}

// epochLive is section 4: another epoch is another session, older or newer.
func epochLive(a *ask, s table.State) ruling {
	if *a.Selector.Epoch != s.Live.ID.Epoch {
		return refuse(CodeEnded)
	}
	return pass()
}

// deadlineAhead is section 2, expiry: after the live epoch is found and before
// the carrier is checked, a passed deadline refuses the open. The table is left
// as it is: a sweep ends the scope.
func deadlineAhead(a *ask, s table.State) ruling {
	if s.Live.Record.Passed(a.Now) {
		return refuse(CodeNotLive)
	}
	return pass()
}

// carrier is section 4: the owner opens to any module, everyone else by an entry
// of the record's carriers.
func carrier(a *ask, s table.State) ruling {
	if a.Principal == a.Selector.Owner || s.Live.Record.Permits(a.Principal, a.Module) {
		return pass()
	}
	return refuse(CodeNotCarrier)
}

// bindProof is section 4: a record with a hash asks a proof of every opener that
// no launch nonce attests. Any other proof is ignored, a malformed one too.
func bindProof(a *ask, s table.State) ruling {
	hash := s.Live.Record.BindProof
	switch {
	case a.Principal.Reserved() || hash == nil:
		return pass()
	case a.Selector.BindProof == nil:
		return refuse(CodeBindProofRequired)
	case !a.proof.matches(hash):
		return refuse(CodeBindProofMismatch)
	}
	return pass()
}

// flowGate is sections 4 and 4a: a flow goes only to a module that promised not
// to take it for its owner's ordinary session.
func flowGate(a *ask, s table.State) ruling {
	attrs := &s.Live.Record.Attributes
	if attrs.FlowID == nil || a.Capabilities.Has(CallModes) || a.Capabilities.Has(FlowScopes) {
		return pass()
	}
	return refuse(CodeFlowUnsupported)
}

// runGate is sections 4 and 4a: a run goes only to a module that tells it from
// its agent, and a delegating one only to a declarer of call modes, since
// agent-run-scopes/v1 was promised for runs that carry no authority.
func runGate(a *ask, s table.State) ruling {
	attrs := &s.Live.Record.Attributes
	if attrs.RunID == nil || a.Capabilities.Has(CallModes) ||
		!attrs.Delegates && a.Capabilities.Has(AgentRunScopes) {
		return pass()
	}
	return refuse(CodeAgentRunUnsupported)
}
