package proxy

import (
	"context"

	"scopeward/admission"
	"scopeward/table"
)

// SessionInfo is one session as the operator sees it.
type SessionInfo struct {
	Conn     ConnID                 `json:"conn"`
	Role     string                 `json:"role"`               // client, module or hello
	Module   string                 `json:"module,omitempty"`   // a module's id
	Provides []admission.Capability `json:"provides,omitempty"` // a module's
	Pending  int                    `json:"pending"`            // marked opens or stamped binds under way
	Routes   []RouteInfo            `json:"routes,omitempty"`   // of an opener
}

// RouteInfo is one live scoped route in its opener's space.
type RouteInfo struct {
	Channel uint16        `json:"channel"`
	Epoch   uint32        `json:"epoch"`
	Module  string        `json:"module"`
	Scope   table.ScopeID `json:"-"`
	Route   table.RouteID `json:"route"`
}

// infoEvent asks a session what it holds.
type infoEvent struct{ tell func(SessionInfo) }

func (infoEvent) event() {}

func (s *Session) info() SessionInfo {
	i := SessionInfo{Conn: s.id, Role: "client", Module: s.module.id, Provides: s.module.provides.Sorted(), Pending: s.marked + len(s.binds)}
	switch s.role {
	case registered:
		i.Role = "module"
	case helloSent:
		i.Role = "hello"
	}
	for at, r := range s.routes {
		i.Routes = append(i.Routes, RouteInfo{at.channel, at.epoch, r.module, r.scope, r.id})
	}
	return i
}

// Sessions asks every session what it holds, in no order. It waits for the
// loops, or for ctx.
func (s *Server) Sessions(ctx context.Context) []SessionInfo {
	return gather(ctx, s, func(tell func(SessionInfo)) Event { return infoEvent{tell} })
}

// Connections is how many pairs of connections there are.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Evict closes by hand the live routes whose scope matches, on every connection
// or on one (conn not 0), with reason restart, and says how many.
func (s *Server) Evict(ctx context.Context, conn ConnID, match func(table.ScopeID) bool) int {
	n := 0
	for _, closed := range gather(ctx, s, func(tell func(int)) Event {
		return evictEvent{conn, match, tell}
	}) {
		n += closed
	}
	return n
}

// gather posts an event to every session and collects what they tell. A session
// that ends meanwhile tells nothing.
func gather[T any](ctx context.Context, s *Server, event func(tell func(T)) Event) []T {
	s.mu.Lock()
	ids := make([]ConnID, 0, len(s.conns))
	for id := range s.conns {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	told := make(chan T, len(ids))
	missed := make(chan struct{}, len(ids))
	for _, id := range ids {
		e := event(func(v T) { told <- v })
		if !s.postOr(id, e, func() { missed <- struct{}{} }) {
			missed <- struct{}{}
		}
	}
	var all []T
	for range ids {
		select {
		case v := <-told:
			all = append(all, v)
		case <-missed:
		case <-ctx.Done():
			return all
		}
	}
	return all
}
