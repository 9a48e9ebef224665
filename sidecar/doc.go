// Package sidecar is the application: it reads the router's connection file,
// stands a [proxy.Server] in front of that router, and publishes a connection
// file of its own for modules and clients to read.
//
// Who owns what:
//
//	keeper       the router's presence: watches its file, keeps one link to it,
//	             attaches and detaches everything below with it
//	publication  our own file: its lock, its place, its removal
//	healer       the module ids that said Hello through us, across our restarts
//	attribution  which process is at the other end of a connection
//	launch.Table what only the router knows, for the proxy
//	proxy.Server the connections
//
// The order is always the same. The router appears: launch table, world,
// publication, healing. The router goes: publication first, then sessions, then
// the launch table. An absent router is a state and not a failure; what an
// operator has to correct ends [Run] with one line.
//
// A [Sidecar] is built and tested without fx; module.go alone knows it.
package sidecar
