package e2e

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"testing"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// stampOf is the scope member of a bind.
type stampOf struct {
	Owner           object `json:"owner"`
	Ref             string `json:"ref"`
	Epoch           uint64 `json:"scope_epoch"`
	Kind            string `json:"kind"`
	Attributes      object `json:"attributes"`
	OwnerAuthorized bool   `json:"owner_authorized"`
}

// seen is one line of what a module wrote. The modules write different members.
type seen struct {
	Kind      string   `json:"kind"`
	Body      bindBody `json:"body"`      // oldmodule: the bind or HelloAck as it came
	Principal object   `json:"principal"` // carrier: of a bind
	Identity  identity `json:"identity"`  // echo-module: of a bind
	Scope     *stampOf `json:"scope"`
	CallMode  string   `json:"call_mode"`
	Error     string   `json:"error"` // oldmodule: a body that did not decode
	Result    object   `json:"result"`
	Done      bool     `json:"done"` // scope-owner: its steps are through
}

type identity struct {
	ProjectRoot string `json:"project_root"`
}

type bindBody struct {
	Op                   string    `json:"op"`
	Principal            object    `json:"principal"`
	Identity             object    `json:"identity"`
	ConsumerCapabilities *[]string `json:"consumer_capabilities"`
	Scope                *stampOf  `json:"scope"`
	CallMode             *string   `json:"call_mode"`
	SubcOps              []string  `json:"subc_ops"`
	SubcCapabilities     []string  `json:"subc_capabilities"`
}

// saw returns what the module id wrote so far.
func (w *world) saw(id string) []seen {
	w.t.Helper()
	content, err := os.ReadFile(w.events(id))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(w.t, err)
	var all []seen
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s seen
		if json.Unmarshal(lines.Bytes(), &s) == nil { // the last line may be under way
			all = append(all, s)
		}
	}
	return all
}

// lastBind is the last bind that the module id was sent.
func (w *world) lastBind(id string) seen {
	w.t.Helper()
	all := w.saw(id)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Kind == "bind" {
			return all[i]
		}
	}
	require.Failf(w.t, "no bind", "%s was sent none", id)
	return seen{}
}

// count returns how many of what the module id wrote are of kind.
func (w *world) count(id, kind string) int {
	n := 0
	for _, s := range w.saw(id) {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

// waitSynced waits until the scope owner id has run its steps for the nth time.
func (w *world) waitSynced(id string, n int) {
	w.t.Helper()
	within(w.t, 2*patience, id+"'s steps", func() bool {
		done := 0
		for _, s := range w.saw(id) {
			if s.Done {
				done++
			}
		}
		return done >= n
	})
}

// restart asks the router to restart the module id, as an operator would.
func (w *world) restart(id string) {
	w.t.Helper()
	f := w.admin().request(object{"op": wire.OpSupervisorRestart, "module_id": id})
	require.Equal(w.t, wire.Response, f.Type, "%s", f.Body)
}

// routes returns how many routes the router holds to the module id.
func (w *world) routes(admin *link, id string) int {
	w.t.Helper()
	type entry struct {
		ModuleID string   `json:"module_id"`
		Routes   []object `json:"routes"`
	}
	all := decode[struct {
		Modules []entry `json:"modules"`
	}](w.t, admin.request(object{"op": wire.OpSupervisorRoutes}))
	for _, e := range all.Modules {
		if e.ModuleID == id {
			return len(e.Routes)
		}
	}
	return 0
}

// noRoutes waits until the router holds no route to any of ids.
func (w *world) noRoutes(admin *link, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		within(w.t, patience, "the last route to "+id+" to go", func() bool { return w.routes(admin, id) == 0 })
	}
}

// pid is the process of the module id's current launch, 0 when it has none.
func (w *world) pid(id string) int {
	w.t.Helper()
	conn, err := dialFile(w.routerFile())
	require.NoError(w.t, err)
	defer conn.Close()
	return w.livePID(conn, id)
}

// livePID asks the router on conn, which nothing else uses.
func (w *world) livePID(conn net.Conn, id string) int {
	type live struct {
		ModuleID string `json:"module_id"`
		PID      int    `json:"pid"`
	}
	var snapshot struct {
		Live []live `json:"live"`
	}
	if json.Unmarshal(askOnce(conn, object{"op": wire.OpSpawnSnapshot}), &snapshot) != nil {
		return 0
	}
	for _, l := range snapshot.Live {
		if l.ModuleID == id {
			return l.PID
		}
	}
	return 0
}

// carrier drives a carrier module over a route of its own.
type carrier struct {
	w *world
	l *link
	r *route
}

// said is a carrier's answer: one of its members is set.
type said struct {
	OK      any      `json:"ok"`
	Refused *refusal `json:"refused"`
	Failed  string   `json:"failed"`
	Reason  string   `json:"reason"`
}

// carry opens a plain route to the carrier module id.
func (w *world) carry(id string) *carrier {
	w.t.Helper()
	l := w.client()
	return &carrier{w: w, l: l, r: l.mustOpen(w.opening(id))}
}

func (c *carrier) ask(body object) said {
	c.w.t.Helper()
	f := c.l.call(c.r, body)
	require.Equal(c.w.t, wire.Response, f.Type, "%s", f.Body)
	return *decode[said](c.w.t, f)
}

// open has the carrier open an onward route under scope, which may be nil, and
// keep it as name.
func (c *carrier) open(name, target string, scope object) said {
	c.w.t.Helper()
	body := object{"kind": "open", "route": name, "target": target, "identity": c.w.identity()}
	if scope != nil {
		body["scope"] = scope
	}
	return c.ask(body)
}

func (c *carrier) call(name string, body any) said {
	c.w.t.Helper()
	return c.ask(object{"kind": "call", "route": name, "body": body})
}

// ended returns the reasons of the route.closed pushes that the carrier got.
func (c *carrier) ended() []string {
	c.w.t.Helper()
	var reasons []string
	closed, _ := c.ask(object{"kind": "ended"}).OK.([]any)
	for _, push := range closed {
		reason, _ := push.(map[string]any)["reason"].(string)
		reasons = append(reasons, reason)
	}
	return reasons
}

func requireOK(t *testing.T, s said) {
	t.Helper()
	require.NotNil(t, s.OK, "%+v", s)
}

func requireRefused(t *testing.T, code string, s said) {
	t.Helper()
	require.NotNil(t, s.Refused, "%+v", s)
	require.Equal(t, code, s.Refused.Code, s.Refused.Message)
}
