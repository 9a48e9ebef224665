package routertest

import (
	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// Client is an opener.
type Client struct{ *Peer }

// Dial connects a client to the router, or the sidecar, whose connection file is
// at path.
func Dial(tb TB, path string) *Client {
	tb.Helper()
	return DialFile(tb, readFile(tb, path))
}

// DialFile is Dial for a file that was read.
func DialFile(tb TB, f connfile.File) *Client {
	tb.Helper()
	return &Client{newPeer(tb, "client", dialFile(tb, f), nil)}
}

// DialPipe connects a client to r in memory.
func DialPipe(tb TB, r *Router) *Client {
	tb.Helper()
	return &Client{newPeer(tb, "client", dialPipe(tb, r), nil)}
}

// OpenOption changes the body of an open.
type OpenOption func(Doc)

// With sets any member of the body: scope, consumer_capabilities, identity, a
// member that nobody knows.
func With(name string, value any) OpenOption { return func(d Doc) { d[name] = value } }

// Scope names a scope: a selector.
func Scope(selector any) OpenOption { return With("scope", selector) }

// As opens in the name of a launch.
func As(l Launch) OpenOption {
	return With("consumer_identity", Doc{"module_id": l.ModuleID, "launch_nonce": l.Nonce})
}

// Root sets the identity's project_root, which is "/" otherwise.
func Root(path string) OpenOption {
	return With("identity", Doc{"project_root": path, "harness": "test", "session": "s1"})
}

// Capabilities sets consumer_capabilities.
func Capabilities(list ...string) OpenOption {
	return With("consumer_capabilities", append([]string{}, list...))
}

// Kind asks for another role than tool_provider.
func Kind(kind string) OpenOption {
	return func(d Doc) { d["target"].(Doc)["kind"] = kind }
}

// Opening is an open under way.
type Opening struct {
	*Call
	c *Client
}

// StartOpen sends an open of module's tool_provider role.
func (c *Client) StartOpen(module string, opts ...OpenOption) *Opening {
	body := Doc{
		"op":     wire.OpRouteOpen,
		"target": Doc{"kind": "tool_provider", "module_id": module},
	}
	Root("/")(body)
	for _, o := range opts {
		o(body)
	}
	return &Opening{c.Start(wire.Request, wire.ControlChannel, 0, body), c}
}

// Route waits for the open to be accepted and fails the test when it is not.
func (o *Opening) Route() *Route {
	o.c.tb.Helper()
	r := o.Wait().OK()
	var body struct {
		Op      string `json:"op"`
		Channel uint16 `json:"route_channel"`
		Epoch   uint32 `json:"route_epoch"`
	}
	r.Into(&body)
	return &Route{o.c, body.Channel, body.Epoch}
}

// Open opens a route to module's tool_provider role and fails the test when it is
// refused.
func (c *Client) Open(module string, opts ...OpenOption) *Route {
	c.tb.Helper()
	return c.StartOpen(module, opts...).Route()
}

// OpenRefused opens a route that must be refused with code.
func (c *Client) OpenRefused(code, module string, opts ...OpenOption) Reply {
	c.tb.Helper()
	return c.StartOpen(module, opts...).Wait().Refused(code)
}

// Route is a client's side of one route.
type Route struct {
	c       *Client
	Channel uint16
	Epoch   uint32
}

func (rt *Route) pair() (uint16, uint32) { return rt.Channel, rt.Epoch }

// Start sends a request on the route.
func (rt *Route) Start(body []byte) *Call {
	return rt.c.Start(wire.Request, rt.Channel, rt.Epoch, body)
}

// Call sends a request on the route and returns the reply's body. An Error fails
// the test.
func (rt *Route) Call(body string) string {
	rt.c.tb.Helper()
	return string(rt.Start([]byte(body)).Wait().OK().Frame.Body)
}

// Send sends any frame on the route.
func (rt *Route) Send(t wire.Type, flags wire.Flags, corr uint64, body []byte) {
	rt.c.Send(wire.Header{Type: t, Flags: flags, Channel: rt.Channel, Epoch: rt.Epoch, Corr: corr}, body)
}

// Goodbye closes the route.
func (rt *Route) Goodbye() { rt.c.SendRaw(wire.AppendGoodbye(nil, rt.Channel, rt.Epoch)) }

// NextGoodbye waits for the route's Goodbye, which must be the next unasked
// frame.
func (rt *Route) NextGoodbye() {
	rt.c.tb.Helper()
	rt.c.NextGoodbye(rt.Channel, rt.Epoch)
}

// Drained waits for a scope drain of the route: the route.closed push with that
// reason, then the Goodbye.
func (rt *Route) Drained(reason string) {
	rt.c.tb.Helper()
	closed := rt.c.NextPush(wire.OpRouteClosed)
	if got := closed.Text("reason"); got != reason {
		rt.c.tb.Fatalf("client: wanted route.closed with %s, got %s", reason, describe(closed.Frame))
	}
	rt.NextGoodbye()
}

// Live reports whether the router still has the route, by a liveness poll.
func (rt *Route) Live() bool {
	rt.c.tb.Helper()
	r := rt.c.Ask(Doc{"op": wire.OpRoutePoll, "route_channel": rt.Channel, "route_epoch": rt.Epoch, "kind": "liveness"}).OK()
	return string(r.Member("live")) == "true"
}

// Routes counts the routes that the router says it has to each module.
func (c *Client) Routes() map[string]int {
	c.tb.Helper()
	var body struct {
		Modules []struct {
			ModuleID string           `json:"module_id"`
			Routes   []jsontext.Value `json:"routes"`
		} `json:"modules"`
	}
	c.Ask(Doc{"op": wire.OpSupervisorRoutes}).OK().Into(&body)
	counts := map[string]int{}
	for _, m := range body.Modules {
		if len(m.Routes) > 0 {
			counts[m.ModuleID] = len(m.Routes)
		}
	}
	return counts
}
