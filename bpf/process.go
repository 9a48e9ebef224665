package bpf

import "time"

// Source is where an attribution came from.
type Source uint8

const (
	// SourceEBPF is the socket hooks: who called connect.
	SourceEBPF Source = iota + 1
	// SourceProcfs is a search of /proc: who holds the socket now.
	SourceProcfs
)

func (s Source) String() string {
	switch s {
	case SourceEBPF:
		return "ebpf"
	case SourceProcfs:
		return "procfs"
	}
	return "none"
}

// Process is the process at the other end of a connection. The zero value is
// unknown, and unknown is nobody: it matches no launch.
type Process struct {
	Known       bool      // PID and Start are those of the process that connected, and it was alive just now
	Reason      string    // why not Known, in words for an operator
	PID         int       // as our PID namespace counts; may be set though not Known, then only for a log
	UID         int       // real uid; -1 when not known
	Start       uint64    // clock ticks since boot; 0 when not Known
	Exe         string    // what /proc/PID/exe pointed to, chosen by the peer; "" when unreadable
	ConnectedAt time.Time // when connect was called; zero with [SourceProcfs]
	Source      Source
}

// Instance is the PID with its start time; the zero value when not Known.
func (p Process) Instance() Instance {
	if !p.Known {
		return Instance{}
	}
	return Instance{PID: p.PID, Start: p.Start}
}
