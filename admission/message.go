package admission

import (
	"fmt"

	"scopeward/table"
)

// quotePrincipal renders p with its module id quoted.
func quotePrincipal(p table.Principal) string {
	switch {
	case p.Reserved():
		return "module " + table.QuoteName(p.ModuleID)
	case p.Kind.String() == "":
		return "a peer without a principal"
	}
	return "a peer of kind " + p.Kind.String()
}

// scopeName names the selected scope.
func scopeName(a *ask) string {
	return "scope " + table.QuoteName(a.Selector.Ref) + " of " + quotePrincipal(a.Selector.Owner)
}

func sayEpochNamed(a *ask, _ sight) string {
	return "an open under " + scopeName(a) + " has to name the scope_epoch that it serves"
}

func sayOwnerSynced(a *ask, _ sight) string {
	owner := quotePrincipal(a.Selector.Owner)
	switch {
	case !a.Selector.Owner.Reserved():
		return "only a supervised module owns scopes, not " + owner
	case a.Roster == Configured:
		return owner + " has not synced its scopes in this incarnation"
	}
	return owner + " is not configured and will not sync a scope"
}

func sayRefLive(a *ask, _ sight) string {
	return scopeName(a) + " is not live"
}

func sayEpochLive(a *ask, seen sight) string {
	return fmt.Sprintf("%s is live at scope_epoch %d, not at %d", scopeName(a), seen.stamp.Epoch, *a.Selector.Epoch)
}

func sayDeadlineAhead(a *ask, seen sight) string {
	return fmt.Sprintf("%s is past its deadline, expires_at_ms %d", scopeName(a), *seen.stamp.ExpiresAtMS)
}

func sayCarrier(a *ask, _ sight) string {
	return fmt.Sprintf("%s is neither the owner of %s nor a carrier of it that may open to %s",
		quotePrincipal(a.Principal), scopeName(a), table.QuoteName(a.Module))
}

func sayBindProof(a *ask, _ sight) string {
	if a.Selector.BindProof == nil {
		return scopeName(a) + " asks for a bind proof, and the open has none"
	}
	return "the bind proof is not the one of " + scopeName(a)
}

func sayFlowGate(a *ask, _ sight) string {
	return fmt.Sprintf("target %s provides neither %s nor %s, one of which a scope with flow_id needs",
		table.QuoteName(a.Module), CallModes, FlowScopes)
}

func sayRunGate(a *ask, seen sight) string {
	if seen.stamp.Attributes.Delegates {
		return fmt.Sprintf("target %s does not provide %s, which a scope with run_id that delegates its agent's authority needs",
			table.QuoteName(a.Module), CallModes)
	}
	return fmt.Sprintf("target %s provides neither %s nor %s, one of which a scope with run_id needs",
		table.QuoteName(a.Module), CallModes, AgentRunScopes)
}

// sayStale renders a commit's refusal.
func sayStale(id table.ScopeID, code Code) string {
	scope := "scope " + table.QuoteName(id.Ref) + " of " + quotePrincipal(id.Owner)
	if code == CodeEnded {
		return fmt.Sprintf("%s ended at scope_epoch %d before the module answered", scope, id.Epoch)
	}
	return scope + " changed before the module answered; open again"
}
