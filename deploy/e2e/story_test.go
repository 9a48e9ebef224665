package e2e

import (
	"testing"

	"scopeward/admission"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// The cast of most worlds.
const (
	idEcho    = "echo"    // the SDK's echo module
	idOld     = "old"     // a provider from before scopes
	idModern  = "modern"  // a provider that declares call-modes/v1
	idCarrier = "carrier" // carries scopes, on the SDK
	idOther   = "other"   // the same program, carrying nothing
)

func cast() map[string]module {
	return map[string]module{
		idOwner:   {program: progOwner},
		idEcho:    {program: progEcho},
		idOld:     {program: progOldModule},
		idModern:  {program: progCarrier, env: map[string]string{"CARRIER_CAPABILITIES": string(admission.CallModes)}},
		idCarrier: {program: progCarrier},
		idOther:   {program: progCarrier},
	}
}

// record is a head scope of epoch that the carrier and any direct client may
// open, the latter to the echo module only.
func record(ref string, epoch uint64) object {
	return object{
		"ref": ref, "scope_epoch": epoch, "kind": "head",
		"attributes": object{"agent_id": "agent-7"},
		"carriers": []object{
			{"principal": reserved(idCarrier)},
			{"principal": object{"kind": "direct"}, "targets": []string{idEcho}},
		},
	}
}

func syncStep(generation uint64, records ...object) object {
	return object{"op": "sync", "generation": generation, "scopes": append([]object{}, records...)}
}

// TestStory plays a scope from its sync to the refusal after its end.
func TestStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	w.play(idOwner, syncStep(1, record("s", 1)))
	w.start()
	w.waitSynced(idOwner, 1)
	admin, client, carrier := w.admin(), w.client(), w.carry(idCarrier)

	t.Run("what is advertised", func(t *testing.T) {
		ack := w.saw(idOld)[0]
		require.Equal(t, "hello_ack", ack.Kind)
		require.Subset(t, ack.Body.SubcOps, []string{wire.OpScopeSync, wire.OpScopeApply, wire.OpScopeDescribe})
		capabilities := []string{wire.CapScopes, wire.CapBindProofV1, wire.CapBindProofV2, wire.CapReplaceIfIdle}
		require.Subset(t, ack.Body.SubcCapabilities, capabilities)
		described := decode[struct {
			Capabilities []string `json:"capabilities"`
		}](t, client.request(object{"op": wire.OpServerDescribe}))
		require.Subset(t, described.Capabilities, capabilities)
	})

	t.Run("the launched owner's sync", func(t *testing.T) {
		var created any
		for _, s := range w.saw(idOwner) {
			if ok, is := s.Result["ok"].(map[string]any); is {
				created = ok["results"].([]any)[0].(map[string]any)["outcome"]
			}
		}
		require.Equal(t, "created", created)
	})

	stamp := &stampOf{
		Owner: reserved(idOwner), Ref: "s", Epoch: 1, Kind: "head",
		Attributes: object{"agent_id": "agent-7"}, OwnerAuthorized: true,
	}
	t.Run("a stamped bind at a provider from before scopes", func(t *testing.T) {
		requireOK(t, carrier.open("old", idOld, selector("s", 1)))
		bind := w.lastBind(idOld).Body
		require.Equal(t, stamp, bind.Scope)
		require.Equal(t, reserved(idCarrier), bind.Principal)
		require.Nil(t, bind.CallMode)
		require.Nil(t, bind.ConsumerCapabilities, "the mark must not reach a module")
		require.Zero(t, w.count(idOld, "undecodable"))
	})
	t.Run("a stamped bind at a declarer of call modes", func(t *testing.T) {
		requireOK(t, carrier.open("modern", idModern, selector("s", 1)))
		bind := w.lastBind(idModern)
		require.Equal(t, stamp, bind.Scope)
		require.Equal(t, "Classic", bind.CallMode)
		require.Equal(t, reserved(idCarrier), bind.Principal)
	})
	t.Run("an unscoped bind", func(t *testing.T) {
		requireOK(t, carrier.open("plain", idOld, nil))
		bind := w.lastBind(idOld).Body
		require.Nil(t, bind.Scope)
		require.Nil(t, bind.CallMode)
	})
	t.Run("echo calls", func(t *testing.T) {
		for _, name := range []string{"old", "plain"} {
			require.Equal(t, object{"n": "1"}, carrier.call(name, object{"n": "1"}).OK)
		}
	})
	var live *route
	t.Run("a direct client that the record lists", func(t *testing.T) {
		live = client.mustOpen(w.scoped(idEcho, "s", 1))
		answer := decode[object](t, client.call(live, object{"n": "2"}))
		require.Equal(t, object{"ok": true, "echo": object{"n": "2"}}, *answer)
	})

	t.Run("refusals leave nothing behind", func(t *testing.T) {
		before := map[string]int{idOld: w.routes(admin, idOld), idModern: w.routes(admin, idModern), idEcho: w.routes(admin, idEcho)}
		other := w.carry(idOther)
		requireRefused(t, "scope_not_carrier", other.open("x", idOld, selector("s", 1)))
		requireRefused(t, "scope_ended", carrier.open("x", idOld, selector("s", 2)))
		requireRefused(t, "scope_not_live", carrier.open("x", idOld, selector("nowhere", 1)))
		requireRefused(t, "scope_epoch_required", carrier.open("x", idOld, object{"owner": reserved(idOwner), "ref": "s"}))
		_, refused := client.open(w.scoped(idOld, "s", 1))
		require.Equal(t, "scope_not_carrier", refused.Code, "direct is targeted at the echo module only")
		for id, n := range before {
			require.Equal(t, n, w.routes(admin, id), id)
		}
	})

	binds := w.count(idOld, "bind")
	w.play(idOwner, syncStep(1))
	w.restart(idOwner)
	w.waitSynced(idOwner, 2)

	t.Run("the end of the scope at the client", func(t *testing.T) {
		push := client.next()
		require.Equal(t, wire.Push, push.Type)
		require.Equal(t, wire.RouteClosed{
			Op: wire.OpRouteClosed, ModuleID: idEcho, Channels: []uint16{live.Channel}, Reason: "scope_ended",
		}, *decode[wire.RouteClosed](t, push))
		bye := client.next()
		require.Equal(t, wire.Header{Type: wire.Goodbye, Channel: live.Channel, Epoch: live.Epoch}, bye.Header)
	})
	t.Run("the end of the scope at the carrier", func(t *testing.T) {
		within(t, patience, "two route.closed pushes", func() bool { return len(carrier.ended()) == 2 })
		require.Equal(t, []string{"scope_ended", "scope_ended"}, carrier.ended())
		require.Nil(t, carrier.call("old", object{}).OK, "no call on a revoked route is answered")
		require.Equal(t, object{"n": "3"}, carrier.call("plain", object{"n": "3"}).OK, "an unscoped route stays")
	})
	t.Run("the end of the scope at the providers", func(t *testing.T) {
		w.noRoutes(admin, idModern, idEcho)
		within(t, patience, "one route to remain", func() bool { return w.routes(admin, idOld) == 1 })
		within(t, patience, "the provider's Goodbye", func() bool { return w.count(idOld, "goodbye") > 0 })
	})
	t.Run("the refusal afterwards", func(t *testing.T) {
		requireRefused(t, "scope_not_live", carrier.open("again", idOld, selector("s", 1)))
		_, refused := client.open(w.scoped(idEcho, "s", 1))
		require.Equal(t, "scope_not_live", refused.Code)
		w.noRoutes(admin, idEcho, idModern)
		require.Equal(t, binds, w.count(idOld, "bind"), "nothing reached the module")
	})
}
