// Package wrapper is `scopeward exec`: it stands in a module's command in the
// router's configuration and turns into that module.
//
// The flow: every mention of the router's connection file in the arguments and
// the environment is replaced by ours ([Rewrite]); then [Await] waits until our
// file is there and a handshake with it succeeds, since the router launches
// modules before we are up and gives up on one that fails four times; then
// [Exec] replaces this process by the program. The PID, and with it the launch,
// stays; so do descriptor 3, through which newer routers hand the launch nonce,
// and everything else in the environment.
package wrapper
