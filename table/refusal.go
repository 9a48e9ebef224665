package table

// Code is a stable refusal code of the contract (section 5a).
type Code string

// Codes of a whole call.
const (
	CodeInvalidControlBody Code = "invalid_control_body"
	CodeSyncNotAuthority   Code = "scope_sync_not_authority"
	CodeSyncRequired       Code = "scope_sync_required"
	CodeSyncStale          Code = "scope_sync_stale"
	CodeLiveLimitExceeded  Code = "scope_live_limit_exceeded"
	CodeAttributesTooLarge Code = "scope_attributes_too_large"
)

// Codes of one record.
const (
	CodeEpochRegressed        Code = "scope_epoch_regressed"
	CodeEpochInUse            Code = "scope_epoch_in_use"
	CodeAttributeNotPermitted Code = "scope_attribute_not_permitted"
	CodeCarrierTargetsInvalid Code = "scope_carrier_targets_invalid"
	CodeDelegatesWithoutAgent Code = "scope_delegates_without_agent"
	CodeRunIDWithoutAgent     Code = "scope_run_id_without_agent"
	CodeRunIDWithFlowID       Code = "scope_run_id_with_flow_id"
	CodeParentNotPermitted    Code = "scope_parent_not_permitted"
	CodeKindChanged           Code = "scope_kind_changed"
	CodeEpochEnded            Code = "scope_epoch_ended"
	CodeExpired               Code = "scope_expired"
	CodeExpiryImmutable       Code = "scope_expiry_immutable"
	CodeExpiryTooFar          Code = "scope_expiry_too_far"
)

// Codes of a commit (section 4).
const (
	// CodeScopeEnded says that the captured epoch is no longer live. Terminal.
	CodeScopeEnded Code = "scope_ended"
	// CodeScopeChanged says that the record changed. The opener may retry.
	CodeScopeChanged Code = "scope_changed"
)

// Refusal refuses a whole call. It is a value, not an error: a refused call has
// changed nothing. The message names refs and members and holds no secret.
type Refusal struct {
	Code    Code
	Message string
}
