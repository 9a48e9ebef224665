package routertest

import (
	"maps"
	"slices"
	"time"

	"scopeward/proxy/wire"
)

type routeClosing struct {
	Op       string `json:"op"`
	ModuleID string `json:"module_id"`
	Reason   string `json:"reason"`
}

// routeClosed is this router's: it names no channels.
type routeClosed struct {
	Op                    string `json:"op"`
	ModuleID              string `json:"module_id"`
	Reason                string `json:"reason"`
	Drained               bool   `json:"drained"`
	Abandoned             int    `json:"abandoned"`
	ExcludedSubscriptions int    `json:"excluded_subscriptions"`
	Terminal              bool   `json:"terminal"`
}

type moduleDraining struct {
	Op         string `json:"op"`
	Reason     string `json:"reason"`
	DeadlineMS int64  `json:"deadline_ms"`
}

// drain closes ep to new opens and requests, waits at most d until nothing is in
// flight on its routes, closes them, and asks the module to go. Then it calls
// then.
func (r *Router) drain(ep *endpoint, reason string, d time.Duration, then func()) {
	ep.draining = reason
	ep.conn.out.push(push(moduleDraining{"module.draining", reason, time.Now().Add(d).UnixMilli()}))
	excluded, abandoned := 0, len(ep.pending)
	for _, rt := range ep.routes {
		for _, subscription := range rt.inFlight {
			if subscription {
				excluded++
			}
		}
	}
	r.change.Broadcast()
	clients := ep.clients()
	for _, c := range clients {
		c.out.push(push(routeClosing{wire.OpRouteClosing, ep.id, reason}))
	}
	for _, corr := range slices.Sorted(maps.Keys(ep.pending)) {
		p := ep.pending[corr]
		r.fail(p, *refusal("module_reloading", "module_id %q is reloading", ep.id))
		p.abandon()
	}
	done := false
	finish := func(drained bool) {
		if done {
			return
		}
		done = true
		ep.quiet = nil
		closed := push(routeClosed{
			Op: wire.OpRouteClosed, ModuleID: ep.id, Reason: reason, Drained: drained,
			Abandoned: abandoned, ExcludedSubscriptions: excluded, Terminal: reason == "disable",
		})
		for _, c := range clients {
			c.out.push(closed)
		}
		for _, rt := range sorted(ep.routes) {
			if rt.drop() {
				rt.tellClient()
			}
		}
		ep.conn.out.push(wire.AppendGoodbye(nil, wire.ControlChannel, 0))
		then()
	}
	if ep.busy() == 0 {
		finish(true)
		return
	}
	timer := r.later(d, func() { finish(false) })
	ep.quiet = func() {
		timer.Stop()
		finish(true)
	}
}

// busy counts requests in flight, subscriptions left out.
func (ep *endpoint) busy() int {
	n := 0
	for _, rt := range ep.routes {
		for _, subscription := range rt.inFlight {
			if !subscription {
				n++
			}
		}
	}
	return n
}

func (r *Router) checkQuiet(ep *endpoint) {
	if ep.quiet != nil && ep.busy() == 0 {
		ep.quiet()
	}
}
