// Package admission decides: whether an open may be bound under a scope, what
// its bind is stamped with, in which call mode it runs, and what becomes of it
// when the module answers. It is sections 4 and 4a of the contract and the
// route.open rows of section 5a.
//
// One place decides, the bind. By then the router has made its own checks, its
// principal is on the frame, and the connection that will serve is the one that
// the frame is on, so the contract's admission and its re-check against the
// captured connection are one step:
//
//	ParseSelector   at the open, off the lock: the scope member, strictly
//	Admit           at the bind: the rules in the contract's order under the
//	                table's lock, usage reserved and the tag captured in that
//	                same step; then the stamp, the mode and the message, off it
//	Commit          at the module's ack: the captured tag against the record's
//
// [Explain] runs the same rules for an operator and reserves nothing.
//
// A decision is a value whose zero is a refusal. A rule is one function: it
// reads the ask and the table's state, allocates nothing and says a code. The
// package is pure: now, principals, capabilities and the roster are arguments.
// What this package knows of a bind proof reaches neither a message nor a stamp.
package admission
