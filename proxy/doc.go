// Package proxy is the sidecar's middle: one downstream connection, its own
// upstream one, and the rules that stand between them.
//
// It is not a load balancer and not a parser of calls. Data frames are relayed
// by their headers alone; control frames are read only where an op is ours.
//
// The flow of one scoped open, in order:
//
//	client session   open.go   takes the scope off, marks the open, forwards it
//	                 router    checks target, identity and limits, relays a bind
//	module session   bind.go   finds the mark, asks admission, stamps or refuses
//	                 module    acks
//	module session   bind.go   commits under the table's lock, or answers for it
//	client session   open.go   learns its channel from the router's answer
//	any session      drain.go  closes the route when its authority goes
//
// A [Session] is a pure state machine: bytes and events in, bytes out. It knows
// no socket, goroutine or clock. Whoever drives it calls one method at a time
// and carries away what it wrote: in production a [Loop] does, in the
// simulation an in-memory driver. Neither holds a rule.
//
// What a peer asks for is paced (pace.go): beside calls it goes on a little at a
// time, and calls go past it. The session counts, its driver gives.
//
// A [World] is what the sessions of one router incarnation share: the scope
// table, the marks of opens under way, and a way to post an event to another
// session. A [Server] owns the listener, the loops and the current world.
//
// Goroutines: one for each loop, which also accepts connections and runs their
// handshakes, one for each connection whose process has to be searched for until it
// is known, one for each upstream dial (it ends within twice
// [handshake.Timeout]), and for each world one that sweeps it, one that renders its change
// feed and one that keeps spare upstream connections; one for each large owner
// call being decoded and each snapshot being taken.
// All are the server's, and [Server.Shutdown] waits for all of them.
package proxy
