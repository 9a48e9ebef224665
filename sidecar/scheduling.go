package sidecar

import (
	"runtime"

	"scopeward/proxy"
)

// giveRoom fits the runtime to the relay. The loops read and write without
// telling its scheduler, so each keeps one of its processors to itself: there
// must be more of those than loops, or nobody else runs.
func giveRoom() {
	if n := proxy.Loops + 2; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
}
