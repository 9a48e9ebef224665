package router

import (
	"context"
	"slices"

	"scopeward/proxy/wire"
)

// Description is what the router says of itself.
type Description struct {
	Ops          []string `json:"subc_ops"`     // of a client connection
	Capabilities []string `json:"capabilities"` // of the router
}

// Describe asks what the router is.
func (l *Link) Describe(ctx context.Context) (Description, error) {
	var d Description
	err := l.Do(ctx, wire.OpServerDescribe, op(wire.OpServerDescribe), &d)
	return d, err
}

// HasSpawnFeed reports whether the router tells of its launches.
func (d Description) HasSpawnFeed() bool {
	return slices.Contains(d.Ops, wire.OpSpawnSnapshot) && slices.Contains(d.Ops, wire.OpSpawnSubscribe)
}

// AdvertisesScopes reports whether the router names every capability of the
// contract. Its module ops are not among a client's: [Link.ModuleOps] has them.
func (d Description) AdvertisesScopes() bool {
	return containsAll(d.Capabilities, wire.CapScopes, wire.CapBindProofV1, wire.CapBindProofV2, wire.CapReplaceIfIdle)
}

// ServesScopes reports whether a router that advertises scopes also offers the
// three ops to its modules.
func ServesScopes(moduleOps []string) bool {
	return containsAll(moduleOps, wire.OpScopeSync, wire.OpScopeApply, wire.OpScopeDescribe)
}

func containsAll(have []string, want ...string) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

// bare is the body of a request that has only its op.
type bare struct {
	Op string `json:"op"`
}

func op(name string) bare { return bare{Op: name} }
