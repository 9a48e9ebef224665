// Package operator is what an operator sees of a running sidecar, and the little
// that an operator does to it.
//
// It decides nothing. The proxy tells it every decision; it never holds the
// proxy up, and a reader that is slow loses its own view and nobody else's.
//
//	proxy, launch table
//	   │ Record, Mismatch: counted, never waits
//	   ▼
//	Journal ──▶ counters        every decision
//	   │    ──▶ refusals        the last 10,000
//	   │    ──▶ hub             readers of the event stream, each with its own bound
//	   └────▶ log queue         limited per opener; one goroutine writes
//
//	Server  ──▶ HTTP over a Unix socket of mode 0600, peer's user checked
//	        ──▶ metrics, there and on a loopback port of their own
//	Prober  ──▶ a connection through ourselves: readiness, health, the watchdog
//
// What the API says is in package api, which both of its sides share. Names that
// a caller chose stand in the API as they are, since JSON escapes them, and in
// the log quoted, escaped and cut. No key, nonce, proof, proof's hash or mark
// comes near this package: none is in a [proxy.Decision], in a table's
// statistics or in a launch's.
//
// Goroutines: the log's writer, one that serves each listener, and those of
// net/http. [Journal.Close] and [Server.Close] wait for all of them.
package operator
