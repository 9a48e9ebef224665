package routertest

import (
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

func TestHelloAck(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.dialModule()
		ack := m.Hello("tool")
		require.Equal(t, wire.HelloAck, ack.Frame.Type)
		require.Zero(t, ack.Frame.Flags)
		var body struct {
			Ver  int      `json:"negotiated_ver"`
			Ops  []string `json:"subc_ops"`
			Caps []string `json:"subc_capabilities"`
		}
		ack.Into(&body)
		require.Equal(t, 2, body.Ver)
		require.Subset(t, body.Ops, []string{"route.open", "supervisor.spawn_subscribe", "catalog.update", "supervisor.live_roots"})
		require.NotContains(t, body.Ops, "scope.sync")
		require.NotContains(t, body.Caps, wire.CapScopes)
	})
}

func TestHelloRefusals(t *testing.T) {
	onBoth(t, Config{Modules: []ModuleConfig{{ID: "vault", Reserved: true}, {ID: "plain"}}}, func(t *testing.T, r *rig) {
		vault := r.launch("vault")
		r.launch("plain")
		m := r.dialModule()
		for _, c := range []struct {
			code string
			id   string
			opts []HelloOption
		}{
			{"invalid_manifest", "", nil},
			{"invalid_manifest", " ", nil},
			{"invalid_module_id", "a/b", nil},
			{"invalid_manifest", "x", []HelloOption{Manifest("protocol_ver", 1)}},
			{"version_unsupported", "x", []HelloOption{Manifest("protocol_ver", 3), func(h, _ Doc) { h["protocol_ver"] = 3 }}},
			{"invalid_hello", "x", []HelloOption{func(h, _ Doc) { delete(h, "manifest") }}},
			{"invalid_hello", "x", []HelloOption{Manifest("provides", "all")}},
			{"invalid_hello", "x", []HelloOption{Manifest("provides", []any{Doc{"role": "zzz"}})}},
			{"invalid_capability_grammar", "x", []HelloOption{Declares("Bad Cap")}},
			{"reserved_module", "vault", nil},
			{"reserved_module", "vault", []HelloOption{Nonce(Launch{Nonce: "wrong"})}},
		} {
			m.StartHello(c.id, c.opts...).Wait().Refused(c.code)
		}
		m.Start(wire.Hello, 0, 0, []byte("junk")).Wait().Refused("invalid_hello")

		m.Hello("vault", Nonce(vault))
		other := r.dialModule()
		other.StartHello("vault", Nonce(vault)).Wait().Refused("duplicate_module_id")
		// An id that is not reserved needs no nonce and takes a wrong one: a Hello
		// attests nothing.
		other.Hello("plain", Nonce(Launch{Nonce: "wrong"}))
		r.module("unheard of")
	})
}

func TestHelloOfAConnectionWithRoutesIsRefused(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		r.module("tool").Serve()
		c := r.client()
		rt := c.Open("tool")
		hello := Doc{"protocol_ver": 2, "manifest": Doc{"module_id": "x", "module_version": "1", "protocol_ver": 2, "provides": []any{}}}
		c.Start(wire.Hello, 0, 0, hello).Wait().Refused("invalid_hello")
		rt.Goodbye()
		c.Start(wire.Hello, 0, 0, hello).Wait().OK()
	})
}

func TestCatalog(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool", Declares("flow-scopes/v1"), NotReady())
		r.module("other")
		c := r.client()
		list := func(id any) string {
			var body struct {
				Modules []any `json:"modules"`
			}
			c.Ask(Doc{"op": "catalog.list", "module_id": id}).OK().Into(&body)
			return string(wire.MustMarshal(body.Modules))
		}
		require.JSONEq(t, `[{"module_id":"tool","ready":false,"not_ready":{"reason":"declared_not_ready"},"module_version":"1.0.0",
			"roles":[{"role":"tool_provider","tools":[],"identity_scope":["project","session"],"concurrency":"module_managed",
			"emits_push":true,"sub_supervises":false}],"control_ops":["route.bind","route.status"],
			"capabilities":{"provides":["flow-scopes/v1"],"requires":[],"must_never_reach":[]}}]`, list("tool"))
		require.JSONEq(t, `[]`, list("nope"))
		require.Contains(t, list(nil), `"other"`)

		m.Ready()
		require.Contains(t, list("tool"), `"ready":true`)
		require.Contains(t, list("tool"), `flow-scopes/v1`, "absent capabilities keep the registered ones")
		m.Update("call-modes/v1")
		require.Contains(t, list("tool"), `"provides":["call-modes/v1"]`)

		update := func(body Doc) Reply {
			body["op"] = "catalog.update"
			return m.Ask(body)
		}
		update(Doc{"provides": []any{}}).Refused("catalog_update_frozen_field")
		update(Doc{}).Refused("invalid_control_body")
		update(Doc{"provides": []any{ToolProvider()}, "capabilities": Doc{"provides": []string{"Bad"}}}).Refused("invalid_capability_grammar")
		update(Doc{"provides": []any{ToolProvider()}, "capabilities": nil}).OK()
		require.Contains(t, list("tool"), `"provides":["call-modes/v1"]`, "a refused or null one changes nothing")
		c.Ask(Doc{"op": "catalog.update", "provides": []any{}}).Refused("not_registered")
	})
}

func TestQ10_GoodbyeOnChannel0KeepsTheConnection(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool").Serve()
		c := r.client()
		rt, second := c.Open("tool"), c.Open("tool")
		b := m.NextBind()
		require.EqualValues(t, 2, second.Channel)
		c.Goodbye()
		m.NextGoodbyes(b, m.NextBind())
		c.Quiet()
		// Numbers begin again at one.
		again := c.Open("tool")
		require.Equal(t, rt.Channel, again.Channel)
		require.Equal(t, rt.Epoch, again.Epoch)
		require.EqualValues(t, 3, m.NextBind().Channel, "the module's do not: it said no Goodbye")

		m.Goodbye()
		again.NextGoodbye()
		c.Quiet()
		c.OpenRefused("unknown_module", "tool")
		m.Hello("tool")
		c.Open("tool")
		b = m.NextBind()
		require.EqualValues(t, 1, b.Channel)
		require.EqualValues(t, 1, b.Epoch)
		require.EqualValues(t, 1, b.Corr)
	})
}

func TestSecondHelloOnOneConnection(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("one").Serve()
		c := r.client()
		c.Open("one")
		m.StartHello("one").Wait().Refused("duplicate_module_id")
		m.Hello("two")
		// This router takes another id on top: the old one stays listed and takes no
		// more binds.
		c.OpenRefused("target_unavailable", "one")
		c.Open("two")
		m.Goodbye()
		m.Settle()
		c.OpenRefused("unknown_module", "one")
		c.OpenRefused("unknown_module", "two")
	})
}
