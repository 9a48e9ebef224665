package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The control ops the sidecar knows. Every other op passes unread.
const (
	OpServerDescribe = "server.describe"
	OpCatalogList    = "catalog.list"
	OpCatalogUpdate  = "catalog.update"
	OpHealthCheck    = "health.check"
	OpRouteOpen      = "route.open"
	OpRoutePoll      = "route.poll"
	OpRouteBind      = "route.bind"
	OpRouteStatus    = "route.status"
	OpRouteClosing   = "route.closing"
	OpRouteClosed    = "route.closed"

	OpSupervisorList     = "supervisor.list"
	OpSupervisorRestart  = "supervisor.restart"
	OpSupervisorRoutes   = "supervisor.routes"
	OpSupervisorSwap     = "supervisor.swap"
	OpSpawnSnapshot      = "supervisor.spawn_snapshot"
	OpSpawnSubscribe     = "supervisor.spawn_subscribe"
	OpSupervisorLiveRoot = "supervisor.live_roots"

	OpScopeSync      = "scope.sync"
	OpScopeApply     = "scope.apply"
	OpScopeDescribe  = "scope.describe"
	OpScopeSubscribe = "scope.subscribe"
)

// ScopePrefix begins every op that is answered here and never forwarded.
const ScopePrefix = "scope."

// The capabilities of the scopes contract that a router advertises. Those that a
// module's manifest provides are in package admission, beside the gates.
const (
	CapScopes         = "scopes/v1"
	CapBindProofV1    = "scope-bind-proof/v1"
	CapBindProofV2    = "scope-bind-proof/v2"
	CapReplaceIfIdle  = "scope-replace-if-idle/v1"
	CapScopeSubscribe = "scope-subscribe/v1"
)

// Codes that the router itself answers and that the sidecar answers in its
// place. The scope codes are in package admission and package table, beside the
// rules that give them.
const (
	CodeInvalidControlBody      = "invalid_control_body"
	CodeInvalidHello            = "invalid_hello"
	CodeInvalidRequest          = "invalid_request"
	CodeUnsupportedControlFrame = "unsupported_control_frame"
	CodeUnknownControlOp        = "unknown_control_op"
	CodeUnknownSubscription     = "unknown_subscription"
	CodeBadConsumerIdentity     = "bad_consumer_identity"
	CodeReservedModule          = "reserved_module"
	CodeTargetUnavailable       = "target_unavailable"

	// CodeNotRegistered answers a scope operation on a connection without a
	// registration (section 11).
	CodeNotRegistered = "not_registered"
)

// Refusals and ends of a scope.subscribe, shaped as the router's spawn feed
// shapes its own (section 5).
const (
	// CodeCursorIncarnation refuses a cursor of another incarnation. Its detail is
	// {current_daemon_incarnation}.
	CodeCursorIncarnation = "scope_cursor_incarnation_mismatch"
	// CodeCursorTooOld refuses a cursor behind which events are no longer kept. Its
	// detail is {oldest_retained_cursor}, that of the oldest event which is.
	CodeCursorTooOld = "scope_cursor_too_old"
	// CodeSubscriberLagged ends a subscription that is too far behind. Its detail
	// is {first_undelivered_cursor}.
	CodeSubscriberLagged = "scope_subscriber_lagged"
)

// MarkPrefix begins the one string that the sidecar adds to an open's
// consumer_capabilities on its way through the router. What follows is a
// secret.
const MarkPrefix = "scopeward.open/"

// HelperPrefix begins the module id of the short-lived registrations that the
// sidecar makes for itself. They are hidden from catalogs.
const HelperPrefix = "scopeward-probe-"

// ErrorBody is the body of an Error frame. Errors carry no op: only the corr
// says what they answer.
type ErrorBody struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Detail  jsontext.Value `json:"detail,omitzero"`
}

// AppendError appends an Error frame that answers corr on (channel, epoch).
func AppendError(b []byte, channel uint16, epoch uint32, corr uint64, body ErrorBody) []byte {
	return AppendFrame(b, Header{Type: Error, Channel: channel, Epoch: epoch, Corr: corr}, MustMarshal(body))
}

// RouteClosed is the push that tells an opener that routes have ended. Channels
// are in the opener's space.
type RouteClosed struct {
	Op                    string   `json:"op"`
	ModuleID              string   `json:"module_id"`
	Channels              []uint16 `json:"channels"`
	Reason                string   `json:"reason"`
	Drained               bool     `json:"drained"`
	Abandoned             int      `json:"abandoned"`
	ExcludedSubscriptions int      `json:"excluded_subscriptions"`
	Terminal              bool     `json:"terminal"`
}

// MustMarshal renders v deterministically. It panics on a type that can't be
// rendered, which no input can cause.
func MustMarshal(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("wire: " + err.Error())
	}
	return b
}
