package launch

import (
	"cmp"
	"slices"
	"strings"

	"scopeward/proxy"
	"scopeward/sidecar/router"
)

// Info is what the table knows, as an operator sees it. No nonce is in it.
type Info struct {
	Launches      []LaunchInfo
	Registrations []RegistrationInfo
}

// LaunchInfo is one living launch of the router's.
type LaunchInfo struct {
	ModuleID   string
	Generation uint64
	PID        uint32
	Current    bool // the newest one: the other is a swap's incumbent on its way out
}

// RegistrationInfo is one accepted Hello that is still registered.
type RegistrationInfo struct {
	ModuleID   string
	Conn       proxy.ConnID
	Verdict    string // of its nonce: genuine, foreign, unknown, or none when it presented none
	Generation uint64 // its launch's, 0 while it is not placed
	Process    Process
}

// Info lists launches by module and generation, and registrations by module and
// connection.
func (t *Table) Info() Info {
	var info Info
	s := t.current()
	if s == nil {
		return info
	}
	s.mu.Lock()
	for _, m := range s.modules {
		for generation, l := range m.live {
			info.Launches = append(info.Launches, LaunchInfo{m.id, generation, l.pid, generation == m.newest})
		}
		for _, r := range m.regs {
			info.Registrations = append(info.Registrations, RegistrationInfo{
				ModuleID: m.id, Conn: r.conn, Verdict: r.verdictName(), Generation: r.generation,
			})
		}
	}
	s.mu.Unlock()
	for i, r := range info.Registrations {
		info.Registrations[i].Process = t.Peer(r.Conn)
	}
	slices.SortFunc(info.Launches, func(a, b LaunchInfo) int {
		return cmp.Or(strings.Compare(a.ModuleID, b.ModuleID), cmp.Compare(a.Generation, b.Generation))
	})
	slices.SortFunc(info.Registrations, func(a, b RegistrationInfo) int {
		return cmp.Or(strings.Compare(a.ModuleID, b.ModuleID), cmp.Compare(a.Conn, b.Conn))
	})
	return info
}

func (r *registration) verdictName() string {
	switch {
	case r.nonce == "":
		return "none"
	case r.verdict == router.Genuine:
		return "genuine"
	case r.verdict == router.Foreign:
		return "foreign"
	}
	return "unknown"
}
