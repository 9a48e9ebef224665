// Package launch is the launch table: what only the router and the kernel know
// of the processes behind the sidecar's connections.
//
// It joins three facts. The router's spawn feed says which module was launched,
// as which generation and PID. An accepted Hello says which nonce a connection
// presented. Attribution, when there is any, says which process opened it. From
// them the table answers the proxy's four questions: is a module configured, is
// a registration's nonce the current launch's, may a Hello pass, may an open
// present an identity.
//
// A Hello attests nothing: the router accepts a wrong nonce or none. So every
// registration's nonce is probed once ([router.Link.Attest]) and the
// registration is placed in a generation:
//
//	Registered   a snapshot says which generation lives, a probe judges the nonce
//	placed       the first genuine Hello of a living generation is that launch's
//	candidate    a second one beside it is a swap's, until the feed spawns it;
//	             the first need not be behind us
//	exited       the feed ends a generation: its Hello connection is cut at once
//
// One [Table] lives as long as the sidecar. What it knows lives as long as the
// router: [Table.Attach] begins a span and [Table.Detach] forgets it. All
// goroutines are a span's, and Detach waits for them. Nothing that the proxy
// calls blocks.
package launch
