package launch

import "scopeward/proxy"

// Process is one process. A PID alone is not one: it is used again.
type Process struct {
	PID    uint32
	Start  uint64 // when it started, in clock ticks since boot; 0: not known, and nobody
	Exe    string // its executable for an operator's eyes, "" when it can't be read
	Reason string // why it is not known, in words for an operator
}

// Same reports whether p and q are one process, not merely one PID.
func (p Process) Same(q Process) bool { return p.PID == q.PID && p.Start == q.Start && p.Start != 0 }

// Attributor says which process is at the other end of a connection, and how
// processes descend. Unknown is an answer.
type Attributor interface {
	// Peer names the process that connected s, and holds it until release is
	// called. It is asked once for each connection, when it has been accepted.
	Peer(s proxy.Socket) (p Process, release func())
	// Waits says whether Peer has to wait for anything.
	Waits() bool
	// Lookup names the living process with this PID.
	Lookup(pid uint32) (Process, bool)
	// Parent names the parent of a living process.
	Parent(p Process) (Process, bool)
}

// held is the process of one connection.
type held struct {
	Process
	release func()
}

// maxDepth bounds a walk up the process tree.
const maxDepth = 64

// descends reports whether p is root or, in a tree, one of its descendants.
func (t *Table) descends(p, root Process, tree bool) bool {
	for range maxDepth {
		if p.Same(root) {
			return true
		}
		if !tree {
			return false
		}
		var ok bool
		if p, ok = t.p.Attributor.Parent(p); !ok {
			return false
		}
	}
	return false
}

// Accepted attributes a connection. See [proxy.Peers].
func (t *Table) Accepted(id proxy.ConnID, s proxy.Socket, mayWait bool) bool {
	p, release := Process{}, func() {}
	if t.p.Attributor != nil {
		if !mayWait && t.p.Attributor.Waits() {
			return false
		}
		p, release = t.p.Attributor.Peer(s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peers[id] = held{p, release}
	return true
}

// Closed lets a connection's process go. See [proxy.Peers].
func (t *Table) Closed(id proxy.ConnID) {
	t.mu.Lock()
	h, ok := t.peers[id]
	delete(t.peers, id)
	s := t.span
	t.mu.Unlock()
	if ok {
		h.release()
	}
	if s != nil {
		s.closed(id)
	}
}

// open reports whether a connection is accepted and not closed.
func (t *Table) open(id proxy.ConnID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.peers[id]
	return ok
}

// Peer returns the process that opened a connection, the zero process when it is
// not attributed.
func (t *Table) Peer(id proxy.ConnID) Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.peers[id].Process
}

func (t *Table) connectionsOf(p Process) []proxy.ConnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []proxy.ConnID
	for id, q := range t.peers {
		if q.Same(p) {
			ids = append(ids, id)
		}
	}
	return ids
}
