package e2e

import (
	"bytes"
	"strings"
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// idArray is a module that answers a bind with an array.
const idArray = "array"

// TestGuard: nobody but the sidecar puts a scope, a call mode or a mark on a
// bind, and no JSON array passes where the router would take it for an object.
func TestGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	open := record("s", 1)
	open["carriers"] = []object{{"principal": object{"kind": "direct"}}}
	w.play(idOwner, syncStep(1, open))
	w.start()
	w.waitSynced(idOwner, 1)
	admin := w.admin()

	// refused sends a control body as it stands and returns the code.
	refused := func(t *testing.T, ty wire.Type, body string) string {
		t.Helper()
		before := w.count(idOld, "bind")
		l := w.client()
		f := l.await(l.ask(wire.Header{Type: ty, Flags: wire.FlagInteractive}, []byte(body)))
		require.Equal(t, wire.Error, f.Type, "%s", f.Body)
		w.noRoutes(admin, idOld)
		require.Equal(t, before, w.count(idOld, "bind"), "nothing may reach the module")
		return decode[refusal](t, f).Code
	}
	plain := string(wire.MustMarshal(w.opening(idOld)))
	identity := string(wire.MustMarshal(w.identity()))
	arrayIdentity := string(wire.MustMarshal([]string{w.path("project"), "e2e", "s1"}))
	scope := string(wire.MustMarshal(selector("s", 1)))
	with := func(member string) string { return strings.TrimSuffix(plain, "}") + "," + member + "}" }

	t.Run("a call mode of the client's is lost", func(t *testing.T) {
		l := w.client()
		body := w.opening(idOld)
		body["call_mode"] = "codemode"
		l.mustOpen(body)
		bind := w.lastBind(idOld).Body
		require.Nil(t, bind.CallMode)
		require.Nil(t, bind.Scope)
		l.close()
	})
	t.Run("a null scope is no scope", func(t *testing.T) {
		l := w.client()
		body := w.opening(idOld)
		body["scope"] = nil
		l.mustOpen(body)
		require.Nil(t, w.lastBind(idOld).Body.Scope)
		l.close()
	})
	t.Run("consumer capabilities come back as they were", func(t *testing.T) {
		l := w.client()
		for _, list := range [][]string{nil, {}, {"a", "a", "ä\u0000"}} {
			body := w.scoped(idEcho, "s", 1)
			if list != nil {
				body["consumer_capabilities"] = list
			}
			l.mustOpen(body)
		}
		l.close()
	})
	w.noRoutes(admin, idOld, idEcho)

	mark := wire.MarkPrefix + strings.Repeat("0", 32)
	for name, c := range map[string]struct {
		ty   wire.Type
		body string
		code string
	}{
		"a guessed mark":                  {wire.Request, with(`"consumer_capabilities":["` + mark + `"]`), wire.CodeInvalidRequest},
		"a guessed mark and scope":        {wire.Request, with(`"scope":` + scope + `,"consumer_capabilities":["` + mark + `"]`), wire.CodeInvalidRequest},
		"an escaped mark":                 {wire.Request, with(`"consumer_capabilities":["\u0073copeward.open/` + strings.Repeat("0", 32) + `"]`), wire.CodeInvalidRequest},
		"a scope twice":                   {wire.Request, with(`"scope":null,"scope":` + scope), wire.CodeInvalidControlBody},
		"a scope twice, escaped":          {wire.Request, with(`"scope":` + scope + `,"sc\u006fpe":null`), wire.CodeInvalidControlBody},
		"an op twice":                     {wire.Request, with(`"op":"server.describe"`), wire.CodeInvalidControlBody},
		"a scope that is a string":        {wire.Request, with(`"scope":"s"`), wire.CodeInvalidControlBody},
		"a scope that is an array":        {wire.Request, with(`"scope":[` + scope + `]`), wire.CodeInvalidControlBody},
		"an open that is an array":        {wire.Request, `["route.open",` + identity + `]`, wire.CodeInvalidControlBody},
		"an identity that is one":         {wire.Request, strings.Replace(plain, identity, arrayIdentity, 1), wire.CodeInvalidControlBody},
		"an array identity, scoped":       {wire.Request, strings.Replace(with(`"scope":`+scope), identity, arrayIdentity, 1), wire.CodeInvalidControlBody},
		"a consumer identity that is one": {wire.Request, with(`"consumer_identity":["` + idCarrier + `","00"]`), wire.CodeInvalidControlBody},
		"a Hello that is one":             {wire.Hello, `[{"module_id":"sneak","module_version":"1","protocol_ver":2,"provides":[]},2]`, "invalid_hello"},
		"a scope op from a client":        {wire.Request, `{"op":"scope.sync","generation":1,"scopes":[]}`, "not_registered"},
		"a BOM":                           {wire.Request, "\ufeff" + plain, wire.CodeInvalidControlBody},
		"an invalid UTF-8 scope":          {wire.Request, with("\"scope\":{\"owner\":{\"kind\":\"reserved\",\"module_id\":\"" + idOwner + "\"},\"ref\":\"s\xff\",\"scope_epoch\":1}"), wire.CodeInvalidControlBody},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.code, refused(t, c.ty, c.body)) })
	}

	t.Run("a second Hello under another id", func(t *testing.T) {
		m := w.register("two-faced", nil)
		f := m.await(m.ask(wire.Header{Type: wire.Hello}, helloBody("victim")))
		require.Equal(t, wire.Error, f.Type, "the router itself lets it in")
		_, refused := w.client().open(w.opening("victim"))
		require.Equal(t, "unknown_module", refused.Code)
	})
	t.Run("a module may not open", func(t *testing.T) {
		m := w.register("intruder", nil)
		f := m.await(m.ask(wire.Header{}, []byte(with(`"scope":`+scope))))
		require.Equal(t, wire.CodeUnsupportedControlFrame, decode[refusal](t, f).Code)
	})
	t.Run("an ack that is an array commits as the router takes it", func(t *testing.T) {
		acks := func(l *link, f wire.Frame) bool {
			if f.Type != wire.Request || f.Channel != 0 {
				return false
			}
			l.send(wire.Header{Type: wire.Response, Corr: f.Corr}, []byte(`["`+wire.OpRouteBind+`"]`))
			return true
		}
		w.register(idArray, acks)
		l := w.client()
		live := l.mustOpen(w.scoped(idArray, "s", 1))
		w.play(idOwner, syncStep(1))
		w.restart(idOwner)
		push := *decode[wire.RouteClosed](t, l.next())
		require.Equal(t, "scope_ended", push.Reason, "the route was in the index")
		require.Equal(t, []uint16{live.Channel}, push.Channels)
	})
	require.False(t, bytes.Contains(w.sidecar.output(), []byte(wire.MarkPrefix+"0000")), "a mark is in the log")
}

// register connects as a module that the router did not launch and that
// presents no nonce: the router lets it in.
func (w *world) register(id string, answer func(*link, wire.Frame) bool) *link {
	w.t.Helper()
	l := newLink(w.t, w.frontFile(), answer)
	f := l.await(l.ask(wire.Header{Type: wire.Hello}, helloBody(id)))
	require.Equal(w.t, wire.HelloAck, f.Type, "%s", f.Body)
	return l
}

// provides is the roles of a plain tool provider.
func provides() []object {
	return []object{{
		"role": "tool_provider", "tools": []string{}, "identity_scope": []string{"project"},
		"concurrency": "module_managed", "emits_push": true, "sub_supervises": false,
	}}
}

// helloBody is the Hello of a module that presents no nonce.
func helloBody(id string) []byte {
	return wire.MustMarshal(object{"protocol_ver": 2, "manifest": object{
		"module_id": id, "module_version": "1", "protocol_ver": 2, "provides": provides(),
	}})
}
