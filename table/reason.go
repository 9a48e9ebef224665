package table

import "fmt"

// reason is why one record is refused. It is found under the lock and put into
// words off it. The zero value is no refusal.
type reason struct {
	code  Code
	epoch uint64     // the epoch held, for codes that compare with one
	link  linkDefect // for a parent that is not permitted
}

func (r reason) some() bool { return r.code != "" }

// linkDefect is what is wrong with a new parent link.
type linkDefect uint8

const (
	// linkOwner names a principal that owns no scopes.
	linkOwner linkDefect = iota + 1
	// linkAbsent names a parent that is not live.
	linkAbsent
	// linkEpoch names an epoch that is not the parent's live one.
	linkEpoch
	// linkForeign comes from an owner that the parent does not list.
	linkForeign
	// linkCycle would make the scope its own ancestor.
	linkCycle
)

// message names what of rec is wrong. It never counts or names routes.
func (r reason) message(rec *Record) string {
	switch r.code {
	case CodeCarrierTargetsInvalid:
		return fmt.Sprintf("targets of a carrier must list 1 to %d modules", MaxCarrierTargets)
	case CodeAttributeNotPermitted:
		return "agent_id, delegates, flow_id and run_id are for owners listed in scope_authority_owners"
	case CodeDelegatesWithoutAgent:
		return "delegates needs an agent_id"
	case CodeRunIDWithoutAgent:
		return "run_id needs an agent_id"
	case CodeRunIDWithFlowID:
		return "run_id and flow_id exclude each other"
	case CodeEpochEnded:
		return fmt.Sprintf("scope_epoch %d has ended, use a higher one", rec.Epoch)
	case CodeExpired:
		return fmt.Sprintf("scope_epoch %d has passed its deadline, use a higher one", rec.Epoch)
	case CodeEpochRegressed:
		return fmt.Sprintf("scope_epoch %d is lower than %d", rec.Epoch, r.epoch)
	case CodeKindChanged:
		return fmt.Sprintf("kind is fixed for scope_epoch %d", rec.Epoch)
	case CodeExpiryImmutable:
		return fmt.Sprintf("expires_at_ms is fixed for scope_epoch %d", rec.Epoch)
	case CodeExpiryTooFar:
		return fmt.Sprintf("expires_at_ms is more than %d ms ahead", uint64(MaxExpiryAheadMS))
	case CodeEpochInUse:
		return "routes are still bound to the live scope epoch"
	case CodeParentNotPermitted:
		return r.linkMessage(rec.Parent)
	}
	return string(r.code)
}

func (r reason) linkMessage(parent *ScopeID) string {
	switch r.link {
	case linkOwner:
		return "the parent's owner is not a supervised module"
	case linkAbsent:
		return fmt.Sprintf("the parent %s is not live", parent)
	case linkEpoch:
		return fmt.Sprintf("the parent %s is live at scope_epoch %d", parent, r.epoch)
	case linkForeign:
		return fmt.Sprintf("the parent %s does not list this owner in child_owners", parent)
	case linkCycle:
		return fmt.Sprintf("the link to the parent %s would close a cycle", parent)
	}
	return "the parent is not permitted"
}
