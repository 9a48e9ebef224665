package bpf

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Peer is the process at the other end of one connection, held by a pidfd, which
// its connections share, for as long as the connection lives: while it is open, Alive speaks of that
// process and never of another with its PID. The caller owns it and closes it
// with the connection. Methods may be called from any goroutine.
type Peer struct {
	process Process

	mu   sync.Mutex
	hold *hold // nil: none
}

// Process is who connected, as established when the connection was accepted.
func (p *Peer) Process() Process { return p.process }

// Alive reports whether the process that connected still runs. It is false for
// an unknown peer and after Close. A process that was passed the socket later
// does not count.
func (p *Peer) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold != nil && running(p.hold.pidfd)
}

// Close lets the process go. It is safe to call again.
func (p *Peer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil {
		return nil
	}
	err := p.hold.release()
	p.hold = nil
	return err
}

// unknownPeer is a peer of whom only a reason is known.
func unknownPeer(s Source, reason string) *Peer {
	return &Peer{process: Process{UID: -1, Source: s, Reason: reason}}
}

// newPeer takes hold of who, and only then looks at it. Facts read from /proc are
// of the held process, because it is still alive after the last of them was read.
// connected is the boot-time stamp of the connect, 0 when there is none: a
// process that started after it is another one with a recycled PID. still, which
// may be nil, is asked after the process is held whether it is the one we mean.
func (h *held) newPeer(who Process, connected uint64, still func() bool) *Peer {
	p := &Peer{process: who}
	fd, err := unix.PidfdOpen(who.PID, 0)
	if err != nil {
		p.process.Reason = "the process that connected can't be held: " + err.Error()
		if err == unix.ESRCH {
			p.process.Reason = reasonEnded
		}
		return p
	}
	reason := ""
	started, err := h.started(who.PID, fd)
	exe, _ := os.Readlink("/proc/" + strconv.Itoa(who.PID) + "/exe") //nolint:errcheck // another user's, or a kernel thread's: ""
	switch {
	case err != nil:
		reason = reasonEnded
	case connected != 0 && started*nsPerTick > connected:
		reason = reasonRecycled
	case still != nil && !still():
		reason = "the process let the socket go while we looked"
	case !running(fd):
		reason = reasonEnded
	}
	if reason != "" {
		_ = unix.Close(fd) // nothing was written to it
		p.process.Reason = reason
		return p
	}
	h.remember(fd, started)
	p.hold = h.share(Instance{PID: who.PID, Start: started}, fd)
	p.process.Known = true
	p.process.Start = started
	p.process.Exe = exe
	return p
}

const (
	reasonEnded    = "the process that connected has ended"
	reasonRecycled = "the process that connected has ended and its PID was given to another"
)

// running reports whether the process of a pidfd has not ended. A pidfd becomes
// readable when it does.
func running(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n == 0
	}
}
