package e2e

import (
	"bytes"
	"testing"

	"scopeward/bpf"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

const notAuthority = "scope_sync_not_authority"

// The times that a swap's candidate is given to get ready, milliseconds. One that
// never gets ready is launched, registers and is refused within the second.
const (
	readyInTime = 20_000
	neverReady  = 6_000
)

// onBothRouters plays a test under enforce on the stub router and on the real
// one, with modules that are processes of their own and the kernel's hooks.
func onBothRouters(t *testing.T, play func(t *testing.T, newWorld func(*testing.T, map[string]module) *world)) {
	t.Helper()
	for name, newWorld := range map[string]func(*testing.T, map[string]module) *world{
		"stub": newStubWorld, "real": newWorld,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needHooks(t)
			play(t, newWorld)
		})
	}
}

// needHooks skips where the host can't run the programs, with one line.
func needHooks(t *testing.T) {
	t.Helper()
	for _, c := range bpf.Probe() {
		if c.State == bpf.StateFail {
			t.Skipf("real eBPF: %s: %s: %s", c.Name, c.Found, c.Remedy)
		}
	}
}

// swapping starts a world under enforce with two actors, the owner of scopes and
// a carrier. Those named in direct are not behind the sidecar.
func swapping(t *testing.T, w *world, direct ...string) *stage {
	t.Helper()
	w.mode = "enforce"
	w.modules[idOwner], w.modules[idCarrier] = w.actor(), w.actor()
	for _, id := range direct {
		w.wrap(id, false)
	}
	w.configure()
	s := w.openStage()
	w.startRouter()
	w.startSidecar()
	requireKernel(t, w)
	return s
}

// wrap puts the module id behind the sidecar, or takes it away, from its next
// launch on.
func (w *world) wrap(id string, behind bool) {
	m := w.modules[id]
	m.direct = !behind
	w.modules[id] = m
}

// rescan has the router read its configuration again.
func (w *world) rescan() {
	w.t.Helper()
	w.configure()
	f := w.admin().request(object{"op": "supervisor.rescan"})
	require.Equal(w.t, wire.Response, f.Type, "%s", f.Body)
}

// swap asks the router for a swap of the module id, on a connection of its own:
// it is answered when the swap has settled.
func (w *world) swap(id string, readyTimeoutMS int) <-chan wire.Frame {
	w.t.Helper()
	body := object{"op": wire.OpSupervisorSwap, "module_id": id, "ready_timeout_ms": readyTimeoutMS}
	return w.admin().ask(wire.Header{}, wire.MustMarshal(body))
}

// ready has a candidate declare itself ready, and waits for the cutover.
func (l *link) ready(swapped <-chan wire.Frame) {
	l.t.Helper()
	update := object{"op": wire.OpCatalogUpdate, "provides": provides(), "ready": true}
	require.Equal(l.t, wire.Response, l.request(update).Type)
	f := <-swapped
	require.Equal(l.t, wire.Response, f.Type, "%s", f.Body)
}

// TestSwap plays a blue/green swap of the owner under enforce: the candidate is
// let in, takes no authority before the cutover, and the incumbent none after it.
func TestSwap(t *testing.T) {
	onBothRouters(t, func(t *testing.T, newWorld func(*testing.T, map[string]module) *world) {
		w := newWorld(t, map[string]module{})
		s := swapping(t, w)
		incumbent := s.wait(idOwner).register(t, true)
		s.wait(idCarrier).register(t, true)
		require.Empty(t, incumbent.sync(1, record("s", 1)))

		swapped := w.swap(idOwner, readyInTime)
		launch := s.wait(idOwner)
		require.Equal(t, "swap_candidate", launch.Role)
		candidate := launch.register(t, false)
		require.Equal(t, notAuthority, candidate.sync(1, record("s", 1)), "before the cutover")
		require.Empty(t, incumbent.sync(2, record("s", 1)), "before the cutover")

		candidate.ready(swapped)
		require.Empty(t, candidate.sync(1, record("s", 1)), "after the cutover")
		require.Contains(t, []string{notAuthority, "not_registered", "closed"}, incumbent.sync(3))
		require.Empty(t, candidate.sync(2, record("s", 1)))
	})
}

// TestSwap_RolledBack: a candidate that never gets ready never had authority,
// and the incumbent's syncs are accepted throughout.
func TestSwap_RolledBack(t *testing.T) {
	onBothRouters(t, func(t *testing.T, newWorld func(*testing.T, map[string]module) *world) {
		w := newWorld(t, map[string]module{})
		s := swapping(t, w)
		incumbent := s.wait(idOwner).register(t, true)
		s.wait(idCarrier).register(t, true)
		require.Empty(t, incumbent.sync(1, record("s", 1)))

		swapped := w.swap(idOwner, neverReady)
		candidate := s.wait(idOwner).register(t, false)
		require.Equal(t, notAuthority, candidate.sync(1))
		require.Empty(t, incumbent.sync(2, record("s", 1)))
		requireRolledBack(t, swapped)
		<-candidate.ended
		require.Empty(t, incumbent.sync(3, record("s", 1)))
	})
}

func requireRolledBack(t *testing.T, swapped <-chan wire.Frame) {
	t.Helper()
	f := <-swapped
	require.Equal(t, wire.Error, f.Type)
	require.True(t, bytes.Contains(f.Body, []byte("never_ready")), "%s", f.Body)
}

// TestSwap_RollingInstall puts modules behind the sidecar one by one, each by a
// swap: the incumbent was launched without the wrapper and is registered straight
// at the router, the candidate comes through us. The owner is the first to come,
// or the second.
func TestSwap_RollingInstall(t *testing.T) {
	onBothRouters(t, func(t *testing.T, newWorld func(*testing.T, map[string]module) *world) {
		for place, before := range map[string][]string{"first place": nil, "second place": {idCarrier}} {
			t.Run(place, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, map[string]module{})
				s := swapping(t, w, idOwner, idCarrier)
				s.wait(idOwner).register(t, true)
				s.wait(idCarrier).register(t, true)
				for _, id := range before {
					w.wrap(id, true)
					w.rescan()
					swapped := w.swap(id, readyInTime)
					other := s.wait(id).register(t, false)
					require.Equal(t, notAuthority, other.sync(1), "before the cutover")
					other.ready(swapped)
					require.Empty(t, other.sync(1), "after the cutover")
				}
				w.wrap(idOwner, true)
				w.rescan()

				swapped := w.swap(idOwner, neverReady)
				failed := s.wait(idOwner).register(t, false)
				require.Equal(t, notAuthority, failed.sync(1, record("s", 1)), "it never gets ready")
				requireRolledBack(t, swapped)
				<-failed.ended
				w.client().mustOpen(w.opening(idOwner)) // the incumbent serves on

				swapped = w.swap(idOwner, readyInTime)
				launch := s.wait(idOwner)
				thief := &launchedBy{launch.entrance}
				candidate := launch.register(t, false)
				require.Equal(t, wire.CodeReservedModule, thief.hello(w), "the candidate's nonce in another process")
				require.Equal(t, notAuthority, candidate.sync(1, record("s", 1)), "before the cutover")
				candidate.ready(swapped)
				require.Empty(t, candidate.sync(1, record("s", 1)), "after the cutover")
				require.Empty(t, candidate.sync(2, record("s", 1)))
			})
		}
	})
}

// launchedBy is what a thief took from a launch.
type launchedBy struct{ entrance }

// hello says Hello with it in this test's own process, and returns the refusal's
// code.
func (l *launchedBy) hello(w *world) string {
	w.t.Helper()
	thief := &launch{entrance: l.entrance}
	c := w.client()
	f := c.await(c.ask(wire.Header{Type: wire.Hello}, thief.hello(true)))
	require.Equal(w.t, wire.Error, f.Type, "%s", f.Body)
	return decode[refusal](w.t, f).Code
}
