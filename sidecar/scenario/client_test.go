package scenario

import (
	"slices"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// client is an opener.
type client struct {
	*routertest.Client
	s *stage
}

func (s *stage) client() *client {
	s.t.Helper()
	return &client{routertest.Dial(s.t, s.front), s}
}

// as opens in the name of a module's live launch.
func (s *stage) as(id string) routertest.OpenOption { return routertest.As(s.router.Launch(id)) }

// scope opens under owner's ref at epoch. More members are laid over the selector.
func scope(owner, ref string, epoch uint64, more ...doc) routertest.OpenOption {
	d := routertest.Selector(owner, ref, epoch)
	for _, m := range more {
		for k, v := range m {
			d[k] = v
		}
	}
	return routertest.Scope(d)
}

// route is a live route, with the bind that its module got.
type route struct {
	*routertest.Route
	bind *routertest.Bind
	at   *module
	c    *client
}

// opens opens a route to a module that serves.
func (c *client) opens(target string, opts ...routertest.OpenOption) *route {
	c.s.t.Helper()
	at := c.s.modules[target]
	r := c.Open(target, opts...)
	return &route{r, at.NextBind(), at, c}
}

// refused opens a route that is refused, and returns the refusal's message.
func (c *client) refused(code, target string, opts ...routertest.OpenOption) string {
	c.s.t.Helper()
	return c.OpenRefused(code, target, opts...).Text("message")
}

// works calls the module and reads its answer.
func (r *route) works() {
	r.c.s.t.Helper()
	require.Equal(r.c.s.t, "x", r.Call("x"))
}

// stamped requires the bind's scope and call mode: see [stamp.String].
func (r *route) stamped(want string) *route {
	r.c.s.t.Helper()
	require.Equal(r.c.s.t, want, stampOf(r.c.s.t, r.bind))
	return r
}

// goodbye closes the route from the client's side and waits until the module
// knows.
func (r *route) goodbye() {
	r.c.s.t.Helper()
	r.Goodbye()
	r.bind.NextGoodbye()
}

// group is what one route.closed tells.
type group struct {
	reason string
	routes []*route
}

func closed(reason string, routes ...*route) group { return group{reason, routes} }

// drained requires one batch: a push for each group, in this order, then the
// Goodbye of each route, and each module's Goodbyes.
func (c *client) drained(groups ...group) {
	c.s.t.Helper()
	var mine []routertest.Routed
	theirs := map[*module][]routertest.Routed{}
	for _, g := range groups {
		var want wire.RouteClosed
		c.NextPush(wire.OpRouteClosed).Into(&want)
		var channels []uint16
		for _, r := range g.routes {
			channels = append(channels, r.Channel)
			mine = append(mine, r.Route)
			theirs[r.at] = append(theirs[r.at], r.bind)
		}
		slices.Sort(channels)
		require.Equal(c.s.t, wire.RouteClosed{Op: wire.OpRouteClosed, ModuleID: g.routes[0].at.ID, Channels: channels, Reason: g.reason}, want)
	}
	c.NextGoodbyes(mine...)
	for m, binds := range theirs {
		m.NextGoodbyes(binds...)
	}
}

// lost requires what an opener sees when a module's connection ends: the router's
// own route.closed, then the Goodbyes.
func (c *client) lost(routes ...*route) {
	c.s.t.Helper()
	require.Equal(c.s.t, "crash", c.NextPush(wire.OpRouteClosed).Text("reason"))
	var mine []routertest.Routed
	for _, r := range routes {
		mine = append(mine, r.Route)
	}
	c.NextGoodbyes(mine...)
}
