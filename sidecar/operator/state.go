package operator

import (
	"context"

	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// Proxy is the server whose sessions are watched. [proxy.Server] is one.
type Proxy interface {
	World() *proxy.World
	Connections() int
	RelayTimes() proxy.RelayTimes
	Sessions(ctx context.Context) []proxy.SessionInfo
	Evict(ctx context.Context, conn proxy.ConnID, match func(table.ScopeID) bool) int
}

// Launches is what is known of processes and of the router's roster.
// [launch.Table] is one.
type Launches interface {
	Processes
	Info() launch.Info
	Ask(q proxy.Question, reply func(proxy.Answer))
}

// State is what the rest of the sidecar knows of itself. Its members are as the
// API shows them.
type State struct {
	Router      api.Router
	Scopes      string // sidecar, router or nobody
	Published   bool
	Config      api.Config
	Attribution api.Attribution // without mismatches, which the journal counts
}
