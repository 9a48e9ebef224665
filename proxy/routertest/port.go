package routertest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

// given counts the ports that FreePort gave out.
var given atomic.Int32

// FreePort is a port of 127.0.0.1 for a router that runs as a process of its own.
// Nobody takes it before that router does, or between two of its lives: it is below
// those that the kernel gives away, and is given once in a process.
func FreePort(tb TB) int {
	tb.Helper()
	const first, many = 10_000, 20_000
	const apart = 211 // for tests that run beside this one, in processes with the next PIDs
	for range many {
		port := first + (os.Getpid()*apart+int(given.Add(1)))%many
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	tb.Fatalf("no port is free")
	return 0
}
