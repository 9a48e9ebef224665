// Package routertest is a stub of the existing module router, and of the modules
// and clients that speak to it, in the manner of net/http/httptest.
//
// [Router] behaves as the router without scopes does on the wire: Hello and its
// refusals, the catalog, route.open in its order of checks and within its
// limits, binds relayed and answered, channels and epochs numbered per
// connection, Goodbyes, drains, the spawn feed and blue/green swaps. It serves a
// loopback port and a connection file, or any net.Conn by [Router.ServeConn]. It
// keeps time by package time alone, so it runs inside a testing/synctest bubble.
//
// Modules need no process. [Router.Launch] mints a launch with a nonce and a PID
// of the test's choice, [Router.Exit] ends it, [Router.Swap] starts a candidate
// beside it; the spawn feed tells of each. A [Spawner] starts real processes
// instead.
//
// [Client] and [Module] are the two ends of a story. They dial a connection file,
// so the same test runs against the stub, a real router, or a sidecar in front
// of either. Their methods wait at most [Patience] and then fail the test with a
// line that says what did not come.
//
// What the stub leaves out: health probes, configuration reloads and stderr
// capture are answered target_unavailable; storage descriptors and admission
// facts carriers do not exist; of a role declaration its kind and members are
// checked, not what they hold.
package routertest
