package bpf

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"go.uber.org/zap"
)

// Role is what a port is to us.
type Role uint8

const (
	// RoleOwn is a port that we accept on: its connections can be attributed.
	RoleOwn Role = iota + 1
	// RoleRouter is the router's port: connections to it are bypasses.
	RoleRouter
)

// Params are what an Attributor is made from.
type Params struct {
	Log *zap.Logger // nil: silent

	// CgroupPath is the cgroup2 folder to attach to; only processes in it or below
	// are seen. "" finds the root.
	CgroupPath string

	// Inherited are the Files of an earlier Attributor, found by their names. When
	// the set is whole and attached to this group its programs go on without a gap;
	// otherwise it is ignored.
	// They are closed by the one who passed them.
	Inherited []*os.File

	room uint32 // size of the hash maps, 0: as compiled
}

// Attributor tells which process is at the other end of an accepted connection.
// Methods may be called from any goroutine.
type Attributor struct {
	log    *zap.Logger
	source Source
	why    string
	hooks  *hooks // nil with SourceProcfs
	bypass bypasses
	held   held

	portsMu sync.Mutex
	ports   map[Role][]uint16

	known, unknown atomic.Uint64

	ring  *ringbuf.Reader
	done  sync.WaitGroup
	close sync.Once
}

// Open attaches the socket hooks. Call it, and SetPorts, before the listener's
// port is known to anybody: a connect before that is unknown for good.
//
// The error is a [NotSupportedError] when the kernel, the privileges or the
// control groups don't allow it.
func Open(p Params) (*Attributor, error) {
	h, why := adopt(p.Inherited), "adopted the programs of an earlier process"
	if h != nil && !h.attachedTo(p.CgroupPath) {
		h.close() // another group was asked for meanwhile
		h = nil
	}
	if h == nil {
		var err error
		if h, err = loadHooks(p.CgroupPath, p.room); err != nil {
			return nil, err
		}
		why = "attached to " + h.where
	}
	ring, err := ringbuf.NewReader(h.ring)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bypass ring: %w", err), h.close())
	}
	a := newAttributor(p, SourceEBPF, why)
	a.hooks, a.ring = h, ring
	a.done.Go(a.follow)
	return a, nil
}

// OpenProcfs searches /proc instead. why is the reason for doing so, usually the
// error of [Open]; nil says that it was asked for. It is weaker, see the package
// comment, and sees no bypass.
//
// The error is a [NotSupportedError] when /proc doesn't show sockets and their
// holders.
func OpenProcfs(p Params, why error) (*Attributor, error) {
	if err := procfsUsable(); err != nil {
		return nil, err
	}
	text := "asked for"
	if why != nil {
		text = why.Error()
	}
	return newAttributor(p, SourceProcfs, text), nil
}

// OpenAny is Open, or OpenProcfs where the hooks are not supported. A fault is
// never papered over by a fallback.
func OpenAny(p Params) (*Attributor, error) {
	a, err := Open(p)
	if err == nil || !errors.Is(err, ErrNotSupported) {
		return a, err
	}
	b, second := OpenProcfs(p, err)
	if second != nil {
		return nil, errors.Join(err, second)
	}
	b.log.Warn("attribution falls back to /proc", zap.Error(err))
	return b, nil
}

func newAttributor(p Params, s Source, why string) *Attributor {
	log := p.Log
	if log == nil {
		log = zap.NewNop()
	}
	a := &Attributor{log: log.Named("bpf"), source: s, why: why, ports: map[Role][]uint16{}}
	a.Exclude()
	return a
}

// SetPorts makes ports those of a role, in place of what it had. The kernel
// looks at connects to these ports only. A port has one role.
func (a *Attributor) SetPorts(role Role, ports ...uint16) error {
	a.portsMu.Lock()
	defer a.portsMu.Unlock()
	if a.hooks != nil {
		if err := a.hooks.setPorts(role, ports); err != nil {
			return err
		}
	}
	a.ports[role] = append([]uint16(nil), ports...)
	return nil
}

// SetPort is SetPorts with one port.
func (a *Attributor) SetPort(port uint16, role Role) error { return a.SetPorts(role, port) }

// Exclude names the processes whose connects to the router's port are none of a
// bypass, in place of those named before. We are always among them.
func (a *Attributor) Exclude(ids ...Instance) {
	if self, err := InstanceOf(os.Getpid()); err == nil {
		ids = append([]Instance{self}, ids...)
	}
	a.bypass.exclude(ids)
}

// Peer is who connected s, an accepted connection. Ask once for a connection,
// when it is accepted: the record is used up. It is never nil, never waits for
// the peer, and an unknown peer has a reason.
func (a *Attributor) Peer(s Socket) *Peer {
	p := a.peer(s)
	if p.process.Known {
		a.known.Add(1)
	} else {
		a.unknown.Add(1)
	}
	return p
}

// Process is Peer for a caller who holds nothing: what it says may be over the
// moment it is said.
func (a *Attributor) Process(s Socket) Process {
	p := a.Peer(s)
	defer p.Close()
	return p.Process()
}

// peer is Peer without counting.
func (a *Attributor) peer(s Socket) *Peer {
	if a.hooks == nil {
		return a.held.peerByProcfs(s)
	}
	o, reason := a.hooks.lookup(s.Cookie)
	if reason != "" {
		return unknownPeer(SourceEBPF, reason)
	}
	return a.held.newPeer(Process{
		PID:         int(o.tgid),
		UID:         int(o.uid),
		ConnectedAt: wallTime(o.at),
		Source:      SourceEBPF,
	}, o.at, nil)
}

// Bypasses are the connections that reached the router's port past us: how many
// in all, and the last 100 processes that made them, the latest last.
func (a *Attributor) Bypasses() (total uint64, last []Bypass) { return a.bypass.snapshot() }

// Source is where this attributor's answers come from.
func (a *Attributor) Source() Source { return a.source }

// Status is what an operator asks first.
type Status struct {
	Source   Source
	Why      string // where the hooks are attached, or why they are not
	Known    uint64 // connections attributed
	Unknown  uint64 // connections not attributed
	Bypasses uint64
	Lost     Counts // zero with SourceProcfs
}

// Status reports the source in use and what it has seen.
func (a *Attributor) Status() Status {
	total, _ := a.Bypasses()
	s := Status{Source: a.source, Why: a.why, Known: a.known.Load(), Unknown: a.unknown.Load(), Bypasses: total}
	if a.hooks != nil {
		s.Lost = a.hooks.counts()
	}
	return s
}

// sweepEvery is how often records are looked over for leftovers.
const sweepEvery = 30 * time.Second

// follow reads the ring until it is closed, and sweeps in between.
func (a *Attributor) follow() {
	next := time.Now().Add(sweepEvery)
	a.ring.SetDeadline(next)
	var rec ringbuf.Record
	for {
		err := a.ring.ReadInto(&rec)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err == nil {
			if o, ok := decodeOrigin(rec.RawSample); ok {
				a.tell(o)
			}
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			a.log.Error("bypass ring can't be read, bypasses are no longer seen", zap.Error(err))
			return
		}
		if now := time.Now(); !now.Before(next) {
			a.hooks.sweep(bootNow())
			next = now.Add(sweepEvery)
			a.ring.SetDeadline(next)
		}
	}
}

func (a *Attributor) tell(o origin) {
	if b, first := a.bypass.note(o); first {
		a.log.Warn("a process connected straight to the router",
			zap.Int("pid", b.PID), zap.Int("uid", b.UID), zap.String("exe", quoted(b.Exe)))
	}
}

// quoted makes a name that a caller chose fit for a log line.
func quoted(s string) string {
	const limit = 64
	if len(s) > limit {
		s = s[:limit]
	}
	return strconv.QuoteToASCII(s)
}

// Close detaches the programs, unless another process holds them too, and waits
// for the reader. It may be called again.
func (a *Attributor) Close() error {
	var err error
	a.close.Do(func() {
		if a.hooks == nil {
			return
		}
		err = a.ring.Close()
		a.done.Wait()
		err = errors.Join(err, a.hooks.close())
	})
	return err
}
