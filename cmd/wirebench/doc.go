// Command wirebench measures the sidecar beside what people would otherwise put
// in its place. It starts whole worlds side by side, each with its own router in
// its own scratch folder:
//
//	direct   the router alone
//	haproxy  HAProxy in TCP mode, two threads, in front of it
//	plain    a relay of two goroutines a connection in front of it
//	ours     scopeward in front of it
//	native   a router that serves scopes itself
//
// A round runs phase by phase. A phase starts fresh worlds, because a router
// slows with the number of routes it ever opened and a peak of memory can't be
// taken back. Within a phase each measurement visits the worlds one after the
// other, in an order that turns with the round, so that the figures compared
// with each other were taken within seconds. What is judged is the median of
// same-round ratios and never a figure alone.
//
// The load comes from this process for every world, with the same threads: one
// for the opener's side, one for each module's connection, each on its own
// blocking sockets. Both sides dial the world's front, so that a call crosses a
// proxy four times. The router launches this program as its modules too; such a
// puppet only tells its nonce and waits.
package main
