package e2e

import (
	"bytes"
	"strings"
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const idDisabled = "disabled" // of the roster, never launched

// actors makes a world whose owner and carrier are actors.
func actors(t *testing.T, mode string) (*world, *stage) {
	t.Helper()
	w := newWorld(t, map[string]module{
		idOld:      {program: progOldModule},
		idDisabled: {program: progOldModule, disabled: true},
	})
	w.mode = mode
	w.modules[idOwner], w.modules[idCarrier] = w.actor(), w.actor()
	w.configure()
	s := w.openStage()
	w.startRouter()
	w.startSidecar()
	return w, s
}

// requireKernel fails unless the kernel's hooks are what attributes.
func requireKernel(t *testing.T, w *world) {
	t.Helper()
	require.True(t, bytes.Contains(w.sidecar.output(), []byte(`"source":"ebpf"`)), "eBPF must be in use")
}

// TestEnforce: a nonce proves nothing about who holds it. Under enforce a thief
// of the same user is refused whatever it presents, and the real modules work on.
func TestEnforce(t *testing.T) {
	t.Parallel()
	w, s := actors(t, "enforce")
	requireKernel(t, w)
	ownerLaunch, carrierLaunch := s.wait(idOwner), s.wait(idCarrier)
	owner := ownerLaunch.register(t, true)
	carrierLaunch.register(t, true)
	w.waitModules(patience)
	require.Empty(t, owner.sync(1, record("s", 1)))
	carrier := carrierLaunch.connect(t, nil)
	scoped := func() object { return w.scoped(idOld, "s", 1) }
	works := func(t *testing.T) {
		r := carrier.mustOpen(as(scoped(), idCarrier, carrierLaunch.Nonce))
		require.Equal(t, reserved(idCarrier), w.lastBind(idOld).Body.Principal)
		require.Equal(t, wire.Response, carrier.call(r, object{}).Type)
	}
	works(t)
	forged := strings.Repeat("5ec2", 16)

	for name, body := range map[string]object{
		"a scoped open with a stolen nonce": as(scoped(), idCarrier, carrierLaunch.Nonce),
		"a plain open with a stolen nonce":  as(w.opening(idOld), idCarrier, carrierLaunch.Nonce),
		"an open with a wrong nonce":        as(scoped(), idCarrier, forged),
		"an open as the owner":              as(scoped(), idOwner, ownerLaunch.Nonce),
	} {
		t.Run(name, func(t *testing.T) {
			before := w.count(idOld, "bind")
			_, refused := w.client().open(body)
			require.NotNil(t, refused)
			require.Equal(t, wire.CodeBadConsumerIdentity, refused.Code)
			require.Equal(t, before, w.count(idOld, "bind"))
		})
	}
	t.Run("an identity that is an array", func(t *testing.T) {
		body := scoped()
		body["consumer_identity"] = []string{idCarrier, carrierLaunch.Nonce}
		_, refused := w.client().open(body)
		require.Equal(t, wire.CodeInvalidControlBody, refused.Code)
	})
	for name, hello := range map[string]struct{ id, nonce string }{
		"a Hello with a stolen nonce":    {idCarrier, carrierLaunch.Nonce},
		"a Hello with a wrong nonce":     {idCarrier, forged},
		"a Hello without one":            {idCarrier, ""},
		"a Hello for a disabled module":  {idDisabled, ""},
		"a Hello with another's nonce":   {idDisabled, carrierLaunch.Nonce},
		"a Hello as the owner of scopes": {idOwner, ownerLaunch.Nonce},
	} {
		t.Run(name, func(t *testing.T) {
			l := w.client()
			thief := &launch{entrance: entrance{ModuleID: hello.id, Nonce: hello.nonce}}
			body := thief.hello(true)
			if hello.nonce == "" {
				body = helloBody(hello.id)
			}
			f := l.await(l.ask(wire.Header{Type: wire.Hello}, body))
			require.Equal(t, wire.Error, f.Type, "%s", f.Body)
			require.Equal(t, wire.CodeReservedModule, decode[refusal](t, f).Code)
			require.Equal(t, wire.CodeNotRegistered, l.sync(9))
		})
	}
	t.Run("a sync under an id of its own", func(t *testing.T) {
		require.Equal(t, "scope_sync_not_authority", w.register("thief", nil).sync(9))
	})
	works(t)
	require.Empty(t, owner.sync(2, record("s", 1)))
}

// TestObserve: under observe the theft passes and is reported.
func TestObserve(t *testing.T) {
	t.Parallel()
	w, s := actors(t, "observe")
	requireKernel(t, w)
	owner, carrierLaunch := s.wait(idOwner).register(t, true), s.wait(idCarrier)
	carrierLaunch.register(t, true)
	w.waitModules(patience)
	require.Empty(t, owner.sync(1, record("s", 1)))
	w.client().mustOpen(as(w.scoped(idOld, "s", 1), idCarrier, carrierLaunch.Nonce))
	require.Equal(t, reserved(idCarrier), w.lastBind(idOld).Body.Principal)
	within(t, patience, "the report", func() bool {
		return bytes.Contains(w.sidecar.output(), []byte("an identity is presented by a process that it was not given to"))
	})
}
