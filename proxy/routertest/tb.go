package routertest

import "time"

// Patience is how long a client or module waits for anything before it fails the
// test. It is longer than a bind's time.
const Patience = 40 * time.Second

// TB is the part of testing.TB that clients and modules need. A program that is
// no test brings its own: Fatalf must not return.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Doc is a JSON object in the making.
type Doc map[string]any
