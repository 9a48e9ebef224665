// Package e2e plays the sidecar on the real router, with real supervised
// modules behind `scopeward exec`: the published daemon, the SDK's own example
// programs and a provider from before scopes, all built by deploy/realrouter.
//
// A world is one scratch folder with its own router, its own sidecar and the
// modules that the router launches. Nothing outside it is touched, and every
// process that was started in it is ended by its pid.
//
// Only SCOPEWARD_E2E=required runs the tests; without it they skip with one
// line. SCOPEWARD_ROUTER_BIN names the folder with the binaries, SCOPEWARD_E2E_SEED
// and SCOPEWARD_E2E_ROLLING choose which rolling restarts are played,
// SCOPEWARD_E2E_FAULTS which faults, SCOPEWARD_E2E_SOAK how long the soak lasts, and
// SCOPEWARD_E2E_RACE=1 has the sidecar look for data races, which fail the test.
// The package holds tests only.
package e2e
