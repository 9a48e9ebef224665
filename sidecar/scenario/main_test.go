package scenario

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"scopeward/proxy"
)

func TestMain(m *testing.M) {
	// Each sidecar's loops keep a processor of the runtime's each, also when they
	// wait. Make room for as many sidecars as tests run side by side.
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS((n+1)*(proxy.Loops+1) + 2)
	goleak.VerifyTestMain(m)
}
