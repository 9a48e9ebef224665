package demo

import (
	"context"
	"fmt"
	"strings"

	"scopeward/proxy/routertest"
)

// Step is one thing that happened, as the contract says it must.
type Step struct {
	Who    string `json:"who"`
	What   string `json:"what"`
	Result string `json:"result"`           // in one line
	Code   string `json:"code,omitempty"`   // of a refusal, or the reason of a close
	Detail string `json:"detail,omitempty"` // JSON as it was on the wire
}

// Run plays the story and hands each step to tell as it happens. The error says
// what did not go as told.
func Run(ctx context.Context, tell func(Step)) error {
	c := &cast{}
	return c.play(func() { c.story(ctx, tell) })
}

func (c *cast) story(ctx context.Context, tell func(Step)) {
	c.raise(ctx)
	tell(Step{Who: "sidecar", What: "stands in front of the router", Result: "its own connection file is published"})

	tool, ack := c.module(provider, routertest.Declares("call-modes/v1"))
	if ops := string(ack.Member("subc_ops")); !strings.Contains(ops, `"scope.describe"`) || !strings.Contains(ops, `"route.open"`) {
		c.Fatalf("%s: the ack lists the operations %s", provider, ops)
	}
	tool.Serve()
	tell(Step{Who: provider, What: "registers as a provider", Result: "the ack lists the scope operations beside the router's own"})

	o, _ := c.module(owner)
	o.Sync(1, c.head("session-1", runner)).OK()
	tell(Step{Who: owner, What: "scope.sync: session-1@1, carried by " + runner, Result: "created"})

	carrier := c.dial()
	route := carrier.Open(provider, routertest.As(c.router.Launch(runner)), routertest.Scope(routertest.Selector(owner, "session-1", 1)))
	bind := tool.NextBind()
	if bind.Scope == nil || bind.CallMode != "classic" {
		c.Fatalf("%s: the bind came without its stamp", provider)
	}
	tell(Step{Who: runner, What: "opens a route under session-1@1", Result: "admitted: the bind reaches " + provider + " stamped", Detail: string(bind.Scope)})

	if got := route.Call("hello"); got != "hello" && got != "echo:hello" {
		c.Fatalf("%s: called hello, was answered %q", runner, got)
	}
	tell(Step{Who: runner, What: "calls " + provider, Result: "answered"})

	stranger := c.dial()
	refused := stranger.OpenRefused("scope_not_carrier", provider, routertest.Scope(routertest.Selector(owner, "session-1", 1)))
	tell(Step{Who: "a stranger", What: "opens a route under session-1@1", Result: "refused: " + refused.Text("message"), Code: refused.Code()})

	o.Sync(2).OK()
	route.Drained("scope_ended")
	bind.NextGoodbye()
	tell(Step{Who: owner, What: "scope.sync without session-1", Result: "its live route is closed on both sides", Code: "scope_ended"})

	gone := carrier.OpenRefused("scope_not_live", provider, routertest.As(c.router.Launch(runner)), routertest.Scope(routertest.Selector(owner, "session-1", 1)))
	tell(Step{Who: runner, What: "opens under session-1@1 again", Result: "refused: " + gone.Text("message"), Code: gone.Code()})

	status := tool.Describe(owner, "session-1").OK()
	if got := status.Text("status"); got != "ended" {
		c.Fatalf("%s: scope.describe says %q", provider, got)
	}
	tell(Step{Who: provider, What: "scope.describe session-1", Result: "ended: work bound to it may be given up", Detail: string(status.Frame.Body)})

	if left := c.dial().Routes(); len(left) > 0 {
		c.Fatalf("the router still has routes: %v", left)
	}
	tell(Step{Who: "router", What: "supervisor.routes", Result: "no route is left"})
}

// module connects a launched module and registers it.
func (c *cast) module(id string, opts ...routertest.HelloOption) (*routertest.Module, routertest.Reply) {
	m := routertest.DialModule(c, c.file)
	return m, m.Hello(id, append(opts, routertest.Nonce(c.router.Launch(id)))...)
}

func (c *cast) dial() *routertest.Client { return routertest.Dial(c, c.file) }

// head is a record of one session that carrier may open routes under.
func (c *cast) head(ref, carrier string) routertest.Doc {
	return routertest.Doc{
		"ref": ref, "scope_epoch": 1, "kind": "head",
		"attributes": routertest.Doc{"agent_id": "assistant"},
		"carriers":   []any{routertest.Doc{"principal": routertest.Reserved(carrier), "targets": []string{provider}}},
	}
}

// String is the step in one line.
func (s Step) String() string { return fmt.Sprintf("%s: %s → %s", s.Who, s.What, s.Result) }
