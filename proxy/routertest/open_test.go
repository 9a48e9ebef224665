package routertest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func TestOpenCallClose(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c := r.client()
		rt := c.Open("tool")
		require.Equal(t, "ping", rt.Call("ping"))
		b := m.NextBind()
		require.JSONEq(t, `{"op":"route.bind","route_channel":1,"epoch":1,
			"target":{"kind":"tool_provider","module_id":"tool"},
			"identity":{"project_root":"/","harness":"test","session":"s1"},
			"principal":{"kind":"direct"}}`, string(b.Raw))
		rt.Goodbye()
		b.NextGoodbye()
		c.Quiet()

		rt = c.Open("tool")
		m.NextBind().Goodbye()
		rt.NextGoodbye()
		require.False(t, rt.Live())
	})
}

func TestQ1_ConsumerCapabilitiesAreRelayedVerbatim(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c := r.client()
		for _, list := range [][]string{
			{}, {"roots"}, {"scopeward.open/0123", "", "roots", "roots", "é\u0001 \u2028<>&"},
			{strings.Repeat("x", 100_000)}, make([]string, 10_000),
		} {
			c.Open("tool", Capabilities(list...))
			got := m.NextBind().Capabilities
			require.NotNil(t, got)
			require.Equal(t, list, *got)
		}
		for name, v := range map[string]any{"absent": nil, "null": nil} {
			t.Run(name, func(t *testing.T) {
				opt := With("consumer_capabilities", v)
				if name == "absent" {
					opt = func(Doc) {}
				}
				c.Open("tool", opt)
				require.Nil(t, m.NextBind().Capabilities)
			})
		}
		for _, bad := range []any{"x", 1, []any{1}, []any{nil}, Doc{}} {
			c.OpenRefused("invalid_control_body", "tool", With("consumer_capabilities", bad))
		}
	})
}

func TestQ2_OrderOfChecks(t *testing.T) {
	onBoth(t, Config{Modules: []ModuleConfig{{ID: "owner"}, {ID: "off", Disabled: true}, {ID: "up"}}}, func(t *testing.T, r *rig) {
		r.launch("up")
		_, l := r.launched("owner")
		m := r.module("tool").Serve()
		r.module("norole", Roles())
		r.module("warming", NotReady())
		r.module("needy", Manifest("capabilities", Doc{"requires": []any{Doc{"capability": "x/v1", "need": "required"}}}))
		c := r.client()
		wrong := As(Launch{ModuleID: "owner", Nonce: strings.Repeat("0", 64)})

		// Each refusal with a wrong nonce and a bad root besides: what comes first wins.
		c.OpenRefused("unknown_module", "nowhere", wrong, Root(""))
		c.OpenRefused("target_unavailable", "off", wrong, Root(""))
		c.OpenRefused("module_warming", "up", wrong, Root(""))
		warming := c.OpenRefused("module_warming", "warming", wrong, Root(""))
		require.JSONEq(t, `{"reason":"declared_not_ready"}`, string(warming.Member("detail")))
		needy := c.OpenRefused("module_warming", "needy", wrong, Root(""))
		require.JSONEq(t, `{"reason":"required_capability_unprovided","capability":"x/v1"}`, string(needy.Member("detail")))
		c.OpenRefused("target_unavailable", "norole", wrong, Root(""))
		c.OpenRefused("target_unavailable", "tool", Kind("management_surface"), wrong, Root(""))
		c.OpenRefused("bad_consumer_identity", "tool", wrong, Root(""))
		c.OpenRefused("admission_facts_not_permitted", "tool", As(l), Root(""), With("admission_facts", Doc{}))
		c.OpenRefused("invalid_project_root", "tool", As(l), Root(""))
		c.OpenRefused("invalid_control_body", "nowhere", Kind("zzz"))
		c.OpenRefused("invalid_control_body", "nowhere", With("identity", Doc{"harness": "h"}))
		m.NoBind()

		c.Open("tool", As(l))
		require.JSONEq(t, `{"kind":"reserved","module_id":"owner"}`, string(m.NextBind().Principal))
	})
}

func TestQ2_DenyEdge(t *testing.T) {
	onBoth(t, Config{Modules: []ModuleConfig{{ID: "owner"}}}, func(t *testing.T, r *rig) {
		_, l := r.launched("owner", Manifest("capabilities", Doc{"must_never_reach": []string{"vault/v1"}}))
		r.module("vault", Declares("vault/v1")).Serve()
		c := r.client()
		c.OpenRefused("capability_forbidden", "vault", As(l))
		c.Open("vault")
	})
}

func TestQ2_AnIdentityOfALaunchThatNobodyKnowsIsRefused(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		r.module("tool").Serve()
		c := r.client()
		c.OpenRefused("bad_consumer_identity", "tool", As(Launch{ModuleID: "tool", Nonce: ""}))
		c.OpenRefused("bad_consumer_identity", "tool", As(Launch{ModuleID: "tool", Nonce: "x"}))
		for _, bad := range []any{"x", 1, Doc{"module_id": "tool"}, []any{"tool", "x", "y"}} {
			c.OpenRefused("invalid_control_body", "tool", With("consumer_identity", bad))
		}
		c.Open("tool", With("consumer_identity", nil))
	})
}

func TestProjectRootIsResolvedAsFarAsItExists(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link")))
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c := r.client()
		for path, want := range map[string]string{
			dir + "/link":           dir + "/real",
			dir + "/link/gone/deep": dir + "/real/gone/deep",
			dir + "/link/":          dir + "/real",
			"/":                     "/",
		} {
			c.Open("tool", Root(path))
			require.Contains(t, string(m.NextBind().Identity), `"project_root":"`+want+`"`, path)
		}
		c.OpenRefused("invalid_project_root", "tool", Root(dir+"/gone/../x"))
		wd, err := os.Getwd()
		require.NoError(t, err)
		c.Open("tool", Root("no/such"))
		require.Contains(t, string(m.NextBind().Identity), `"`+wd+`/no/such"`)
	})
}

func TestQ2_ModulesErrorIsRelayedVerbatim(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		reject := func(body string) Reply {
			o := c.StartOpen("tool")
			b := m.NextBind()
			m.Send(wire.Header{Type: wire.Error, Corr: b.Corr}, []byte(body))
			return o.Wait()
		}
		requireBody(t, `{"code":"x","message":"m","detail":[1,{"a":null}]}`,
			reject(`{"code":"x", "more":1, "message":"m", "detail":[1, {"a":null}]}`).Frame)
		requireBody(t, `{"code":"scope_ended","message":"mine"}`, reject(`{"message":"mine","code":"scope_ended"}`).Frame)
		if r.real == nil {
			// The real one may send a Goodbye for a bind that is answered at once.
			m.Quiet()
		}
		for _, bad := range []string{`{"code":"x"}`, `not json`, `{"op":"?"}`, `{"code":1,"message":"m"}`} {
			reject(bad).Refused("target_unavailable")
			f := m.Next()
			for r.real != nil && f.Type == wire.Goodbye {
				f = m.Next()
			}
			require.Equal(t, wire.Error, f.Type)
			require.Contains(t, string(f.Body), "invalid_control_body")
		}
		require.Empty(t, c.Routes())
	})
}

func TestQ2_AckMustNameItsOp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{BindTimeout: time.Second})
		m := r.module("tool")
		c := r.client()
		ack := func(body string) *Opening {
			o := c.StartOpen("tool")
			m.Send(wire.Header{Type: wire.Response, Corr: m.NextBind().Corr}, []byte(body))
			return o
		}
		ack(`{"op":"route.bind","more":1}`).Route()
		ack(`["route.bind"]`).Route()
		ack(`{}`).Wait().Refused("target_unavailable")
		require.Contains(t, string(m.Next().Body), "invalid_control_body")
		// Another op's answer is somebody else's: the opener waits on.
		ack(`{"op":"other"}`).Wait().Refused("module_timeout")
		m.NextGoodbye(4, 1)
	})
}

func TestQ2_BreakerCountsUnansweredBindsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRig(t, Config{})
		m := r.module("tool")
		c := r.client()
		for range 12 {
			o := c.StartOpen("tool")
			m.NextBind().Reject("no")
			o.Wait().Refused("no")
		}
		for n := range BreakerThreshold {
			start := time.Now()
			o := c.StartOpen("tool")
			m.NextBind()
			o.Wait().Refused("module_timeout")
			require.Equal(t, DefaultBindTimeout, time.Since(start))
			m.NextGoodbye(uint16(13+n), 1)
		}
		c.OpenRefused("module_timeout", "tool")
		m.NoBind()
		elapse(BreakerCooldown)
		probe := c.StartOpen("tool")
		b := m.NextBind()
		c.OpenRefused("module_timeout", "tool") // one probe at a time
		b.Ack()
		probe.Route()
		m.Serve()
		c.Open("tool")
	})
}

func TestQ9_LimitOfOpensPerConnection(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m, other := r.module("tool"), r.module("other").Serve()
		c := r.client()
		opens := map[string]*Opening{} // by session: the real one relays them in any order
		for n := range MaxOpens {
			session := strconv.Itoa(n)
			opens[session] = c.StartOpen("tool", With("identity", Doc{"project_root": "/", "harness": "h", "session": session}))
		}
		// Before every other check, whatever the target.
		c.OpenRefused("target_unavailable", "other")
		c.OpenRefused("target_unavailable", "nowhere")
		c.OpenRefused("invalid_control_body", "other", Kind("zzz"))
		c.Ask(Doc{"op": "server.describe"}).OK()
		other.NoBind()
		b := m.NextBind()
		b.Ack()
		var id identity
		require.NoError(t, json.Unmarshal(b.Identity, &id))
		opens[id.Session].Route()
		r.openWhenFree(c, "other")
		m.Serve()
		for _, o := range opens {
			o.Route()
		}
	})
}

func TestQ9_LimitOfBindsPerTarget(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		r.module("other").Serve()
		var opens []*Opening
		for range MaxBinds / MaxOpens {
			c := r.client()
			for range MaxOpens {
				opens = append(opens, c.StartOpen("tool"))
			}
		}
		var binds []*Bind
		for range MaxBinds {
			binds = append(binds, m.NextBind())
		}
		c := r.client()
		c.OpenRefused("target_unavailable", "tool")
		c.Open("other")
		for _, b := range binds {
			b.Reject("no")
		}
		for _, o := range opens {
			o.Wait().Refused("no")
		}
		m.Serve()
		r.openWhenFree(c, "tool")
	})
}

// openWhenFree opens a route as soon as a limit lets it: the real router frees a
// place a moment after the answer that freed it.
func (r *rig) openWhenFree(c *Client, module string) {
	r.t.Helper()
	for c.StartOpen(module).Wait().Code() == "target_unavailable" {
		require.NotNil(r.t, r.real, "the stub frees it at once")
	}
}

func TestQ5_UnknownMembersAreDropped(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool", Manifest("zzz", 1)).Serve()
		c := r.client()
		c.Open("tool", Scope(Doc{"owner": 1}), With("call_mode", "flow"), With("role_versions", []any{1}),
			With("identity", Doc{"project_root": "/", "harness": "h", "session": "s", "project_id": "p", "more": 1}),
			With("target", Doc{"kind": "tool_provider", "module_id": "tool", "more": 2}))
		require.JSONEq(t, `{"op":"route.bind","route_channel":1,"epoch":1,
			"target":{"kind":"tool_provider","module_id":"tool"},
			"identity":{"project_root":"/","harness":"h","session":"s","project_id":"p"},
			"principal":{"kind":"direct"}}`, string(m.NextBind().Raw))
		c.Ask(Doc{"op": "scope.sync", "generation": 1, "scopes": []any{}}).Refused("unknown_control_op")
	})
}

func TestArraysAreTakenForObjects(t *testing.T) {
	onBoth(t, Config{Modules: []ModuleConfig{{ID: "owner"}}}, func(t *testing.T, r *rig) {
		m := r.dialModule()
		hello := func(capability string) *Call {
			return m.Start(wire.Hello, 0, 0, []any{[]any{
				"tool", "1", 2, nil, nil, []any{[]any{"tool_provider", []any{}, []any{}, "module_managed", true, false}}, []any{}, nil,
				Doc{"provides": []string{capability}},
			}, 2})
		}
		hello("Any Thing").Wait().Refused("invalid_hello")
		hello("any-thing/v1").Wait().OK()
		m.Serve()
		_, l := r.launched("owner")
		c := r.client()
		c.Ask([]any{"route.open", []any{"tool_provider", "tool"}, []any{"/", "h", "s"}, []any{"owner", l.Nonce}}).OK()
		b := m.NextBind()
		require.JSONEq(t, `{"kind":"reserved","module_id":"owner"}`, string(b.Principal))
		require.JSONEq(t, `{"project_root":"/","harness":"h","session":"s"}`, string(b.Identity))
		c.Ask([]any{"route.open", Doc{"kind": "tool_provider", "module_id": "tool"}, []any{"/", "h", "s", nil}}).OK()
		c.Ask([]any{"server.describe"}).OK()
		c.Ask([]any{"route.open", []any{"tool_provider", "tool", "more"}, []any{"/", "h", "s"}}).Refused("invalid_control_body")
	})
}

func TestRepeatedKnownMembersAreRefusedAndUnknownOnesPass(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		r.module("tool").Serve()
		c := r.client()
		open := func(extra string) Reply {
			return c.Ask([]byte(`{"op":"route.open","target":{"kind":"tool_provider","module_id":"tool"},` +
				`"identity":{"project_root":"/","harness":"h","session":"s"}` + extra + `}`))
		}
		open(`,"zzz":1,"zzz":2,"scope":1,"scope":2`).OK()
		open(`,"identity":{"project_root":"/","harness":"h","session":"s"}`).Refused("invalid_control_body")
		open(`,"op":"route.open"`).Refused("invalid_control_body")
	})
}
