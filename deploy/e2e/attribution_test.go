package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"scopeward/proxy/wire"
	"scopeward/sidecar/operator/api"

	"github.com/stretchr/testify/require"
)

// refusals are those that the operator is shown, the latest last.
func (w *world) refusals() []api.Event {
	w.t.Helper()
	client := api.NewClient(w.socket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := client.Refusals(ctx, api.Filter{})
	require.NoError(w.t, err)
	return got.Refusals
}

// TestThiefIsNamed: a thief's PID and program and the launch's PID are in the
// log and in the refusals list. The nonce is in neither.
func TestThiefIsNamed(t *testing.T) {
	onBothRouters(t, func(t *testing.T, newWorld func(*testing.T, map[string]module) *world) {
		w := newWorld(t, map[string]module{})
		s := swapping(t, w)
		launch := s.wait(idOwner)
		launch.register(t, true)
		program, err := os.Executable()
		require.NoError(t, err)

		require.Equal(t, wire.CodeReservedModule, (&launchedBy{launch.entrance}).hello(w))
		_, refused := w.client().open(as(w.opening(idOwner), idOwner, launch.Nonce))
		require.NotNil(t, refused)
		require.Equal(t, wire.CodeBadConsumerIdentity, refused.Code)

		var list []api.Event
		within(t, patience, "both refusals", func() bool { list = w.refusals(); return len(list) == 2 })
		codes := map[string]bool{}
		for _, e := range list {
			codes[e.Code] = true
			require.EqualValues(t, os.Getpid(), e.PID)
			require.Equal(t, program, e.Exe)
			require.Contains(t, e.Message, fmt.Sprintf("pid %d is no process of its launch, which is pid %d", os.Getpid(), launch.PID))
		}
		require.Equal(t, map[string]bool{wire.CodeReservedModule: true, wire.CodeBadConsumerIdentity: true}, codes)
		require.NotContains(t, fmt.Sprintf("%+v", list), launch.Nonce)
		within(t, patience, "the log", func() bool {
			for line := range bytes.Lines(w.sidecar.output()) {
				if bytes.Contains(line, fmt.Appendf(nil, "pid %d is no process of its launch", os.Getpid())) {
					return bytes.Contains(line, []byte(program[:min(len(program), 40)])) // cut to 64 characters
				}
			}
			return false
		})
		require.False(t, bytes.Contains(w.sidecar.output(), []byte(launch.Nonce)))
	})
}

// TestBypassIsListed: whoever goes straight to the router's port is counted and
// listed. The router and the sidecar are not.
func TestBypassIsListed(t *testing.T) {
	onBothRouters(t, func(t *testing.T, newWorld func(*testing.T, map[string]module) *world) {
		w := newWorld(t, map[string]module{})
		s := swapping(t, w, idCarrier)
		s.wait(idOwner).register(t, true)
		direct := s.wait(idCarrier)
		direct.register(t, true)
		w.admin()
		program, err := os.Executable()
		require.NoError(t, err)

		var seen map[int64]api.Bypass
		within(t, patience, "both", func() bool {
			seen = map[int64]api.Bypass{}
			for _, b := range w.status().Attribution.Bypassing {
				seen[b.PID] = b
			}
			_, ours := seen[int64(os.Getpid())]
			_, modules := seen[int64(direct.PID)]
			return ours && modules
		})
		require.Len(t, seen, 2)
		for _, b := range seen {
			require.Equal(t, program, b.Exe)
			require.Positive(t, b.Count)
		}
		require.GreaterOrEqual(t, w.status().Attribution.Bypasses, uint64(2))
	})
}

// TestEnforce_WithoutAnySource: with neither the hooks nor /proc there is nobody
// to ask. Enforcing is then refused with its remedy, never done by half.
func TestEnforce_WithoutAnySource(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root is missing")
	}
	for mode, ends := range map[string]bool{"enforce": true, "observe": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newStubWorld(t, map[string]module{})
			w.mode = mode
			w.configure()
			p := startProcess(t, "sidecar", w.dir, w.env(), "/usr/bin/unshare", "--mount", "sh", "-c",
				`mount -t tmpfs none /proc && exec "$0" run --config "$1"`, scopeward(t), w.path("side/config.jsonc"))
			w.sidecar = p // which ends it
			if !ends {
				within(t, patience, "the warning", func() bool {
					return bytes.Contains(p.output(), []byte("connections are not attributed: no source of attribution works here"))
				})
				return
			}
			within(t, patience, "the refusal", p.ended)
			require.False(t, p.cmd.ProcessState.Success())
			for _, want := range []string{`"attribution.mode" is "enforce"`, "no source of attribution works here", `set it to "observe" or "off"`} {
				require.Contains(t, string(p.output()), want)
			}
		})
	}
}
