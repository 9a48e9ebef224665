package admission

// Code is a stable refusal code of route.open (section 5a).
type Code string

// Every code that a scope adds to route.open, in the order of section 5a.
const (
	CodeNotSynced           Code = "scope_not_synced"
	CodeChanged             Code = "scope_changed"
	CodeNotLive             Code = "scope_not_live"
	CodeEnded               Code = "scope_ended"
	CodeEpochRequired       Code = "scope_epoch_required"
	CodeBindProofRequired   Code = "scope_bind_proof_required"
	CodeBindProofMismatch   Code = "scope_bind_proof_mismatch"
	CodeNotCarrier          Code = "scope_not_carrier"
	CodeFlowUnsupported     Code = "target_flow_unsupported"
	CodeAgentRunUnsupported Code = "target_agent_run_unsupported"
	CodeUnsupported         Code = "scope_unsupported"
)

// Retryable says whether the opener may open again within its own deadline:
// nothing was sent. Every other code, known or not, is terminal.
func (c Code) Retryable() bool { return c == CodeNotSynced || c == CodeChanged }

// CodeRow is one row of section 5a's table.
type CodeRow struct {
	Code  Code
	Where string
	Means string
}

// Codes is section 5a for route.open, in its order.
func Codes() []CodeRow {
	return []CodeRow{
		{CodeNotSynced, "route.open", "the configured owner has not synced in this incarnation"},
		{CodeChanged, "route.open, commit", "the record changed between admission and commit"},
		{CodeNotLive, "route.open", "the ref is not in the owner's set, the owner is not configured, or the deadline has passed"},
		{CodeEnded, "route.open, admission or commit", "the named epoch is not the live one, or the scope ended"},
		{CodeEpochRequired, "route.open", "the open names no epoch"},
		{CodeBindProofRequired, "route.open", "the record has a hash and the open has no proof"},
		{CodeBindProofMismatch, "route.open", "the proof is malformed or another scope's"},
		{CodeNotCarrier, "route.open", "the opener is neither the owner nor a carrier that may reach this module"},
		{CodeFlowUnsupported, "route.open", "the target provides neither call-modes/v1 nor flow-scopes/v1"},
		{CodeAgentRunUnsupported, "route.open", "the target provides neither call-modes/v1 nor agent-run-scopes/v1, or the run delegates and the target lacks call-modes/v1"},
		{CodeUnsupported, "route.open", "no stamped route can be had here; never an unscoped fallback"},
	}
}
