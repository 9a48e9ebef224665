package router

import (
	"context"
	"fmt"
	"slices"

	"scopeward/proxy/wire"
)

// Verdict is what the router says of a nonce.
type Verdict uint8

const (
	// Unknown says that the router's answer tells nothing: ask again.
	Unknown Verdict = iota
	// Genuine says that the nonce is that of a live launch of the module. A swap
	// has two.
	Genuine
	// Foreign says that the nonce is no live launch's.
	Foreign
)

// The codes that tell. The router judges the identity before it looks at the
// project's root.
const (
	codeRightNonce = "invalid_project_root"
	codeWrongNonce = wire.CodeBadConsumerIdentity
)

// Attest asks whether nonce is a live launch's of moduleID, without anything
// being relayed: an open with an identity to judge and a root that can't be
// bound. "." or any relative root would bind.
//
// The open needs a target that is registered, ready and has a role. The tested
// module is tried first, then another, then a helper of our own.
func (l *Link) Attest(ctx context.Context, moduleID, nonce string) (Verdict, error) {
	targets, err := l.targets(ctx, moduleID)
	if err != nil {
		return Unknown, err
	}
	for _, t := range targets {
		if v, err := l.attestAt(ctx, t, moduleID, nonce); v != Unknown || err != nil {
			return v, err
		}
	}
	h, err := l.registerHelper(ctx)
	if err != nil {
		return Unknown, err
	}
	defer h.close()
	return l.attestAt(ctx, target{Kind: roleTool, ModuleID: h.id}, moduleID, nonce)
}

func (l *Link) attestAt(ctx context.Context, t target, moduleID, nonce string) (Verdict, error) {
	type identity struct {
		ProjectRoot string `json:"project_root"`
		Harness     string `json:"harness"`
		Session     string `json:"session"`
	}
	type consumer struct {
		ModuleID    string `json:"module_id"`
		LaunchNonce string `json:"launch_nonce"`
	}
	body := struct {
		Op       string   `json:"op"`
		Target   target   `json:"target"`
		Identity identity `json:"identity"`
		Consumer consumer `json:"consumer_identity"`
	}{wire.OpRouteOpen, t, identity{"", "scopeward", "attest"}, consumer{moduleID, nonce}}
	var opened struct {
		Channel uint16 `json:"route_channel"`
		Epoch   uint32 `json:"route_epoch"`
	}
	err := l.Do(ctx, wire.OpRouteOpen, body, &opened)
	switch Refused(err) {
	case codeRightNonce:
		return Genuine, nil
	case codeWrongNonce:
		return Foreign, nil
	case "":
		if err != nil {
			return Unknown, err
		}
		// A router that binds an empty root: take the route back.
		h := wire.Header{Type: wire.Goodbye, Channel: opened.Channel, Epoch: opened.Epoch}
		return Unknown, l.send(h, nil)
	}
	return Unknown, nil
}

// target is where a route.open goes.
type target struct {
	Kind      string `json:"kind"`
	ModuleID  string `json:"module_id"`
	ServiceID string `json:"service_id,omitzero"`
}

// The roles that an open can name.
const (
	roleTool       = "tool_provider"
	roleManagement = "management_surface"
	roleService    = "internal_service"
)

// Registered asks whether a module with this id is registered, whichever way it
// came.
func (l *Link) Registered(ctx context.Context, moduleID string) (bool, error) {
	entries, err := l.catalog(ctx)
	return slices.ContainsFunc(entries, func(m entry) bool { return m.ModuleID == moduleID }), err
}

// catalog asks for every registered module. A swap's candidate is not among them
// before cutover.
func (l *Link) catalog(ctx context.Context) ([]entry, error) {
	var reply struct {
		Modules []entry `json:"modules"`
	}
	err := l.Do(ctx, wire.OpCatalogList, op(wire.OpCatalogList), &reply)
	return reply.Modules, err
}

// targets returns at most two usable targets, the tested module first.
func (l *Link) targets(ctx context.Context, moduleID string) ([]target, error) {
	entries, err := l.catalog(ctx)
	if err != nil {
		return nil, fmt.Errorf("find a target: %w", err)
	}
	var own, other []target
	for _, m := range entries {
		t, ok := m.target()
		switch {
		case !ok:
		case m.ModuleID == moduleID:
			own = append(own, t)
		case len(other) == 0:
			other = append(other, t)
		}
	}
	return append(own, other...), nil
}

// entry is one module of the catalog. An absent ready is true.
type entry struct {
	ModuleID string `json:"module_id"`
	Ready    *bool  `json:"ready"`
	Roles    []struct {
		Role      string `json:"role"`
		ServiceID string `json:"service_id"`
	} `json:"roles"`
}

func (e entry) target() (target, bool) {
	if e.Ready != nil && !*e.Ready {
		return target{}, false
	}
	for _, r := range e.Roles {
		switch r.Role {
		case roleTool, roleManagement:
			return target{Kind: r.Role, ModuleID: e.ModuleID}, true
		case roleService:
			return target{Kind: r.Role, ModuleID: e.ModuleID, ServiceID: r.ServiceID}, true
		}
	}
	return target{}, false
}
