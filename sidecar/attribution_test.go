package sidecar

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
