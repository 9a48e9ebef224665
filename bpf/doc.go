// Package bpf tells which process is at the other end of a TCP connection that
// we accepted. It attributes: it redirects, filters and blocks nothing, and what
// follows from a name is decided elsewhere. It knows no routers, modules or
// scopes; ports have roles and processes have lives.
//
// # From a connect to a name
//
//	connect(2)      connect4, connect6   who calls, by the client socket's cookie
//	  first SYN     sockops              who, by network namespace and tuple
//	  established   sockops              who, by the accepted socket's cookie
//	accept(2)       Attributor.Peer      SO_COOKIE, record, pidfd, start time (read once for a process)
//
// A name is settled when the connection is made and carried along; it is never
// looked up again later, when the socket may have changed hands. Records are
// plain hash maps with room for 16,384 entries; a record is deleted when it is
// asked for, when its socket closes, and after five minutes. The programs read
// nothing but their context: no kernel memory, no kernel type information.
//
// An [Attributor] owns the links and maps, and one goroutine that lists bypasses
// and sweeps; Close ends both. A [Peer] is owned by its connection. The C, the
// generated Go and the objects are in this folder; go generate needs clang and
// llvm-strip and reproduces them.
//
// # What comes out
//
// Unknown is an answer with a reason. It is never somebody's name, it matches no
// launch, and whoever enforces refuses it.
//
//	case                                            by the hooks                 by /proc
//	blocking, non-blocking, io_uring                known                        known
//	IPv4, IPv6, v4-mapped, to 0.0.0.0               known                        known
//	multi-path client (our listener falls back)     known                        known
//	TCP fast open, SYN cookies                      known                        known
//	same tuple in another network namespace         known, each its own          the one in ours
//	socket passed or inherited                      the one who connected        who holds it, or unknown
//	  the connector ends after accept               Alive is false               Alive is false
//	  the connector ends before accept              unknown: it has ended        the holder is taken for it
//	socket dissolved and connected again            the one who did so           who holds it
//	exec after connect                              same PID and start, new exe  the same
//	PID recycled before accept                      unknown: recycled            the new process, if it holds it
//	PID recycled after accept                       Alive is false               Alive is false
//	PID namespace of the client                     known, by the host's PID     known, by the host's PID
//	PID or time namespace of ours                   ErrNotSupported              known, by our PIDs
//	a map is full                                   unknown, counted             -
//	programs detached behind our back               unknown, and SelfProbe says  -
//	  the group does not hold both ends             unknown, and SelfProbe says  -
//	no cgroup2, and we may not mount one            ErrNotSupported              known
//	no /proc, or one without sockets                ErrNotSupported without any  ErrNotSupported
//	CAP_BPF or CAP_NET_ADMIN missing                ErrNotSupported              own user's processes
//	connected before SetPorts                       unknown                      known
//	destination rewritten on its way to us          unknown                      unknown
//	straight to the router's port                   listed as bypass             not seen
//
// # What attribution proves, and what it does not
//
// By the hooks, a known peer means: the process with this PID and this start time
// called connect for this very connection, and it was alive when we accepted.
// The kernel says so, not the peer. Another process can't take that name by any
// message it sends, by reusing the port or the PID, or from another network
// namespace.
//
// It does not prove who speaks. A process can hand its connected socket to
// another, which then speaks under its name; Alive turns false only when the
// connector ends. It does not prove what runs: the executable is what the process
// was when we looked, and it may exec another program afterwards. And it does not
// defend a process against its own user: where Yama's ptrace_scope is 0 or absent,
// a process of the same user can attach to a module, make it connect, or take its
// socket; doctor says so. Root, and whoever holds CAP_BPF, CAP_NET_ADMIN or
// CAP_SYS_PTRACE, can do as it likes.
//
// Two lives of a PID within one clock tick (10 ms) look alike between connect and
// accept. PIDs go round faster than that only for those who may choose them
// (CAP_CHECKPOINT_RESTORE).
//
// A local process can fill the maps with sockets that never connect. Others are
// then unknown, which is refused where it matters: availability suffers, names
// don't.
//
// By /proc, a known peer means less: this process held the other end when we
// looked, alone or as the ancestor of all who did. A thief who gives its socket
// away before we look is not seen. Processes of other users stay unknown without
// CAP_SYS_PTRACE, and so does everything outside our network namespace. A lookup
// walks all of /proc and takes milliseconds where the hooks take microseconds.
package bpf
