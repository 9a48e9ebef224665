package sidecar

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/bpf"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
)

// The test's own process is the one that the kernel sees connecting, by whichever
// source works here.
func TestEnforceComparesTheFeedsProcessWithTheOneThatConnected(t *testing.T) {
	r := newRig(t)
	r.cfg.Attribution.Mode = config.AttributionEnforce
	r.cfg.Attribution.Match = config.MatchExact // launch 1 is our ancestor
	router, s := r.startBoth("mine", "stolen")
	require.NotNil(t, s.attribution.source)

	mine := router.LaunchAs("mine", uint32(os.Getpid()))
	m := routertest.DialModule(t, r.front)
	m.Hello("mine", routertest.Nonce(mine))
	m.Serve()
	m.Ask(routertest.Doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []any{}}).OK()
	client := routertest.Dial(t, r.front)
	require.Equal(t, "hi", client.Open("mine", routertest.As(mine)).Call("hi"))

	stolen := router.LaunchAs("stolen", 1) // init, which is not us
	thief := routertest.DialModule(t, r.front)
	thief.StartHello("stolen", routertest.Nonce(stolen)).Wait().Refused(wire.CodeReservedModule)
	thief.StartHello("stolen").Wait().Refused(wire.CodeReservedModule)
	client.OpenRefused(wire.CodeBadConsumerIdentity, "mine", routertest.As(stolen))
	require.Equal(t, "hi", client.Open("mine").Call("hi"), "no identity, no question")
}

func TestObserveReportsTheSameAndLetsItPass(t *testing.T) {
	r := newRig(t)
	r.cfg.Attribution.Mode = config.AttributionObserve
	r.cfg.Attribution.Match = config.MatchExact // launch 1 is our ancestor
	router, _ := r.startBoth("stolen")
	stolen := router.LaunchAs("stolen", 1)
	routertest.DialModule(t, r.front).Hello("stolen", routertest.Nonce(stolen))
	eventually(t, "the report", func() bool {
		for _, e := range r.logs.All() {
			if e.LoggerName == "sidecar.decision" && strings.Contains(fmt.Sprint(e.ContextMap()), "stolen") {
				return true
			}
		}
		return false
	})
}

// Programs that see nothing are noticed at once, not a period later: here they
// are attached to a group that we are not in.
func TestAttributionTriesItselfWhenItBegins(t *testing.T) {
	a, err := openAttribution(config.Attribution{
		Mode: config.AttributionEnforce, Match: config.MatchTree, Cgroup: emptyGroup(t),
	}, nil, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(a.close)
	require.Empty(t, a.view().Fault)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.watch(ctx) }()
	began := time.Now()
	eventually(t, "the first try", func() bool { return a.view().Fault != "" })
	require.Less(t, time.Since(began), probeEvery)
	require.Contains(t, a.view().Fault, bpf.ErrNotAttributed.Error())
	cancel()
	<-ended
}

// What the programs do not see is nobody: the launch's own process is refused as
// a thief is, and the sidecar is not ready.
func TestEnforceWithProgramsThatSeeNothingLetsNobodyIn(t *testing.T) {
	r := newRig(t)
	r.cfg.Attribution = config.Attribution{Mode: config.AttributionEnforce, Match: config.MatchTree, Cgroup: emptyGroup(t)}
	router, s := r.startBoth("mine")
	mine := router.LaunchAs("mine", uint32(os.Getpid()))
	routertest.DialModule(t, r.front).StartHello("mine", routertest.Nonce(mine)).Wait().Refused(wire.CodeReservedModule)
	routertest.DialModule(t, router.Path()).Hello("mine", routertest.Nonce(mine))
	routertest.Dial(t, r.front).OpenRefused(wire.CodeBadConsumerIdentity, "mine", routertest.As(mine))
	eventually(t, "the fault", func() bool { return s.attribution.view().Fault != "" })
	health := s.Health(t.Context())
	require.True(t, health.Live)
	require.False(t, health.Ready)
}

// emptyGroup is a control group without processes. Where the programs can't be
// attached to one the test skips.
func emptyGroup(t *testing.T) string {
	t.Helper()
	for _, c := range bpf.Probe() {
		if c.State == bpf.StateFail {
			t.Skipf("real eBPF: %s: %s: %s", c.Name, c.Found, c.Remedy)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			dir, err := os.MkdirTemp(f[1], "scopeward-test")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
			return dir
		}
	}
	t.Skip("a cgroup2 mount is missing")
	return ""
}
