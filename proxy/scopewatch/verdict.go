package scopewatch

import "github.com/go-json-experiment/json/jsontext"

// Case is one of the five answers of section 5 to a reader that holds something
// bound to a session. The zero value is none of them.
type Case uint8

const (
	// Live: the session is live. Use the binding.
	Live Case = iota + 1
	// Replaced: a new session reuses the ref. The binding is dead.
	Replaced
	// Ended: the session has ended, or its owner's set is without it. The binding
	// is dead.
	Ended
	// NotSynced: the owner has not synced in this incarnation, or the router can't
	// be asked. Nothing is known: the binding is held.
	NotSynced
	// NotConfigured: the owner will never sync. The action is refused and the
	// binding kept.
	NotConfigured
)

var cases = [...]string{Live: "live", Replaced: "replaced", Ended: "ended", NotSynced: "not_synced", NotConfigured: "not_configured"}

// String is the case in a word.
func (c Case) String() string {
	if int(c) < len(cases) {
		return cases[c]
	}
	return ""
}

// The codes that a provider refuses an action with, by name. They are the
// contract's for the same state of a scope at route.open, and section 5's for a
// hold that ran out.
const (
	CodeEnded        = "scope_ended"        // cases 2 and 3
	CodeUnverifiable = "scope_unverifiable" // case 4 past the bound
	CodeNotLive      = "scope_not_live"     // case 5
)

// Verdict says what becomes of a binding.
type Verdict struct {
	Case Case
	// Code is what the action is refused with, "" for [Live] and for a binding
	// that is held.
	Code string
	// Scope is the stamp as it is now, JSON (section 4). Only for [Live].
	Scope jsontext.Value
}

// May says whether the action may run now. Only case 1 may.
func (v Verdict) May() bool { return v.Case == Live }

// Dead says whether the binding is dead: work under it is ended, and what is
// stored for it may be deleted. Only cases 2 and 3 are.
func (v Verdict) Dead() bool { return v.Case == Replaced || v.Case == Ended }

// Held says that nothing is known yet: ask again later. What is stored is kept.
func (v Verdict) Held() bool { return v.Case == NotSynced }

// held is the verdict of case 4.
func held() Verdict { return Verdict{Case: NotSynced} }

func live(scope jsontext.Value) Verdict { return Verdict{Case: Live, Scope: scope} }

func dead(c Case) Verdict { return Verdict{Case: c, Code: CodeEnded} }

// description is scope.describe's answer.
type description struct {
	Status     string         `json:"status"`
	Epoch      uint64         `json:"scope_epoch"`
	Synced     bool           `json:"owner_synced"`
	Configured bool           `json:"owner_configured"`
	Scope      jsontext.Value `json:"scope"`
}

// judge decides as section 5 orders it.
func (d description) judge(b Binding) Verdict {
	switch {
	case d.Status == "live" && d.Epoch == b.Epoch:
		return live(d.Scope)
	case d.Status == "live":
		return dead(Replaced)
	case d.Status == "ended", d.Status == "not_live" && d.Synced:
		return dead(Ended)
	case d.Status == "not_live" && !d.Configured:
		return Verdict{Case: NotConfigured, Code: CodeNotLive}
	}
	return held()
}
