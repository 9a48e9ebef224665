package sidecar

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/bpf"
	"scopeward/sidecar/config"
	"scopeward/sidecar/systemd"
	"scopeward/sidecar/systemd/systemdtest"
)

// supervised gives the rig a service manager whose watchdog waits for 300 ms.
func (r *rig) supervised() *systemdtest.Manager {
	r.t.Helper()
	fake := systemdtest.New(r.t)
	r.t.Setenv("NOTIFY_SOCKET", fake.Path())
	r.t.Setenv("WATCHDOG_PID", "")
	r.t.Setenv("WATCHDOG_USEC", "300000")
	r.manager = systemd.Open()
	return fake
}

func TestTheManagerHearsOfALifeInItsOrder(t *testing.T) {
	r := newRig(t)
	fake := r.supervised()
	s := r.start()
	first := fake.Next()
	require.Equal(t, "1", first["READY"], "ready means listening and watching, with a router or without")
	require.Equal(t, "waiting for the router", first["STATUS"])
	r.stop(s)
	require.Contains(t, fake.Await("STOPPING", "1"), "EXTEND_TIMEOUT_USEC")
}

// An absent router is a state: the probe through ourselves passes, and the ping
// goes out.
func TestAnAbsentRouterIsNoMissedPing(t *testing.T) {
	r := newRig(t)
	fake := r.supervised()
	r.start()
	for range 3 {
		require.Contains(t, fake.Await("WATCHDOG", "1")["STATUS"], "live, not ready: there is no router")
	}
	r.startRouter()
	for !strings.HasPrefix(fake.Await("WATCHDOG", "1")["STATUS"], "ready:") {
	}
}

// A sidecar that nobody can connect to is not pinged for, however alive its
// process is.
func TestAProbeThatFailsSendsNoPing(t *testing.T) {
	r := newRig(t)
	r.startRouter()
	fake := r.supervised()
	s := r.start()
	for !strings.HasPrefix(fake.Await("WATCHDOG", "1")["STATUS"], "ready:") {
	}
	s.server.Deafen()
	for !strings.HasPrefix(fake.Next()["STATUS"], "not live: accept: ") {
	}
	for range 3 {
		require.NotContains(t, fake.Next(), "WATCHDOG")
	}
	require.Equal(t, 1, r.said("the probe through ourselves fails: the watchdog is not pinged"))
}

// The programs and their records stay in the manager's store while none of us
// runs, and the next one takes them up.
func TestARestartLeavesNoGapInAttribution(t *testing.T) {
	needEBPF(t)
	r := newRig(t)
	r.cfg.Attribution.Mode = config.AttributionObserve
	fake := r.supervised()
	s := r.start()
	fake.Await("READY", "1")
	stored := fake.Stored()
	require.NotEmpty(t, stored)
	r.stop(s)

	a, err := openAttribution(r.cfg.Attribution, stored, r.log)
	require.NoError(t, err)
	defer a.close()
	require.Contains(t, a.source.Status().Why, "adopted")
	a.try(t.Context())
	require.Empty(t, a.view().Fault)
}

// needEBPF skips where the hooks can't be attached.
func needEBPF(t *testing.T) {
	t.Helper()
	a, err := bpf.Open(bpf.Params{})
	if err != nil {
		require.ErrorIs(t, err, bpf.ErrNotSupported)
		t.Skip(err)
	}
	require.NoError(t, a.Close())
}
