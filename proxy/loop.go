package proxy

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Loop drives sessions: it waits for their sockets, feeds them what it reads
// and writes what they wrote. One thread runs it, and only that thread touches
// its sessions and writes their sockets; everybody else posts. It holds no rule.
type Loop struct {
	kernel kernel
	poll   int // epoll descriptor
	wake   int // eventfd

	mu     sync.Mutex
	posted []func()
	idle   []func() // run a few at a time, when everything else has had its turn
	awake  bool     // a wake-up is on its way
	closed bool

	pairs  map[*pair]struct{}
	byFD   map[int32]*side
	ready  []*side // sides that have more to do without waiting
	spare  []*side // empty: the memory of the line before
	idling bool    // idle jobs are left
	buf    []byte
	pack   []byte  // small segments for one write
	timers []*pair // pairs with a deadline

	all    []*Loop // of the server, itself among them
	ration ration

	ears      []*ear
	greetings map[int32]*greeting
	line      []*greeting  // by deadline
	load      atomic.Int32 // greetings and pairs
	times     times
}

// NewLoop makes a loop. [Loop.Run] runs it.
func NewLoop() (*Loop, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(poll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, wake, &ev); err != nil {
		unix.Close(poll)
		unix.Close(wake)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	l := &Loop{kernel: rawKernel{}, poll: poll, wake: wake, pairs: make(map[*pair]struct{}), byFD: make(map[int32]*side), greetings: make(map[int32]*greeting), buf: make([]byte, readSize)}
	l.all = []*Loop{l}
	return l, nil
}

// post runs f on the loop's thread. It never blocks. After the loop has been
// closed it does nothing and returns false.
func (l *Loop) post(f func()) bool { return l.postTo(&l.posted, f) }

// postIdle is post for what may wait: a feed is written when there are no
// replies to write and nothing to relay.
func (l *Loop) postIdle(f func()) bool { return l.postTo(&l.idle, f) }

func (l *Loop) postTo(queue *[]func(), f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	*queue = append(*queue, f)
	if !l.awake {
		l.awake = true
		l.signalLocked()
	}
	return true
}

// signalLocked wakes the loop. Under the lock, so that the descriptor is still
// ours.
func (l *Loop) signalLocked() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(l.wake, one[:])
}

// Close ends the loop: [Loop.Run] closes what is left and returns.
func (l *Loop) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.signalLocked()
	}
}

// adopt takes a pair over. It runs on the loop's thread.
func (l *Loop) adopt(p *pair) {
	l.pairs[p] = struct{}{}
	if !p.due.IsZero() {
		l.timers = append(l.timers, p)
	}
	for i := range p.sides {
		sd := &p.sides[i]
		l.byFD[int32(sd.fd)] = sd
		if err := l.watch(sd.fd); err != nil && err != unix.EEXIST { // it was watched in its greeting
			l.drop(p, "epoll: "+err.Error())
			return
		}
	}
	l.provide(p)
}

// watch asks for a socket's edges.
func (l *Loop) watch(fd int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | epollET, Fd: int32(fd)}
	return unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, fd, &ev)
}

// move hands a pair to another loop. An opener and its module on one thread
// would wait for each other. The pair's own events follow it.
func (l *Loop) move(p *pair, to *Loop) {
	for i := range p.sides {
		sd := &p.sides[i]
		delete(l.byFD, int32(sd.fd))
		_ = unix.EpollCtl(l.poll, unix.EPOLL_CTL_DEL, sd.fd, nil)
		sd.queued, sd.readable = false, false // the new loop is told afresh
	}
	delete(l.pairs, p)
	l.forgo(p)
	p.loop.Store(to)
	l.load.Add(-1)
	to.load.Add(1)
	if !to.post(func() { to.adopt(p) }) {
		l.pairs[p] = struct{}{}
		p.loop.Store(l)
		l.load.Add(1)
		l.drop(p, "shut down")
	}
}

// epollET is EPOLLET as the event mask's type has it.
const epollET = 1 << 31

// Run serves until [Loop.Close]. It locks nothing but its queue. Its thread is
// its own and ends with it.
func (l *Loop) Run() {
	giveRoom(1)
	defer giveRoom(-1)
	runtime.LockOSThread()
	beInTurn(unix.SCHED_BATCH)
	for events := make([]unix.EpollEvent, 128); l.turn(events); {
	}
	l.deafen()
	for _, g := range l.greetings {
		l.dismiss(g, "shut down")
	}
	for p := range l.pairs {
		l.drop(p, "shut down")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	unix.Close(l.poll)
	unix.Close(l.wake)
}

// turn waits once and does all that there is to do then. It reports whether there
// will be another turn.
func (l *Loop) turn(events []unix.EpollEvent) bool {
	n, err := l.kernel.wait(l.poll, events, l.timeout())
	if err != nil && err != unix.EINTR {
		return false
	}
	for _, ev := range events[:max(n, 0)] {
		l.event(ev)
	}
	if l.runPosted() {
		return false
	}
	l.runReady()
	l.runEars()
	l.idling = l.runIdle()
	l.runTimers()
	l.runRation()
	l.runGreetings()
	return true
}

func (l *Loop) event(ev unix.EpollEvent) {
	if int(ev.Fd) == l.wake {
		var x [8]byte
		_, _ = unix.Read(l.wake, x[:])
		return
	}
	sd := l.byFD[ev.Fd]
	if sd == nil {
		if g := l.greetings[ev.Fd]; g != nil {
			g.hup = g.hup || ev.Events&(unix.EPOLLERR|unix.EPOLLHUP|unix.EPOLLRDHUP) != 0
			l.greet(g)
		}
		for _, e := range l.ears {
			e.heard = e.heard || e.fd == int(ev.Fd)
		}
		return
	}
	if ev.Events&(unix.EPOLLERR|unix.EPOLLHUP|unix.EPOLLRDHUP) != 0 {
		sd.readable, sd.hup = true, true
	}
	if ev.Events&unix.EPOLLIN != 0 {
		sd.readable = true
	}
	if ev.Events&unix.EPOLLOUT != 0 && len(sd.out) > 0 {
		l.flush(sd)
		// What was not read for want of room here can go on.
		l.again(&sd.pair.sides[sd.dir.other()])
		l.again(sd)
	}
	l.again(sd)
}

// again puts a side back in the line when it has something to do.
func (l *Loop) again(sd *side) {
	if sd.readable && !sd.queued {
		sd.queued = true
		l.ready = append(l.ready, sd)
	}
}

// runPosted runs what was posted, and reports whether the loop is closed.
func (l *Loop) runPosted() bool {
	l.mu.Lock()
	posted, closed := l.posted, l.closed
	l.posted, l.awake = nil, false
	l.mu.Unlock()
	for _, f := range posted {
		f()
	}
	return closed
}

// idleTurns is how many idle jobs run before the loop looks at its sockets.
const idleTurns = 4

// runIdle runs a few idle jobs and reports whether there are more.
func (l *Loop) runIdle() bool {
	l.mu.Lock()
	n := min(len(l.idle), idleTurns)
	jobs := l.idle[:n:n]
	l.idle = l.idle[n:]
	if len(l.idle) == 0 {
		l.idle = nil
	}
	more := l.idle != nil
	l.mu.Unlock()
	for _, f := range jobs {
		f()
	}
	return more
}

func (l *Loop) runReady() {
	line := l.ready
	l.ready = l.spare
	for _, sd := range line {
		sd.queued = false
		if sd.fd >= 0 && sd.pair.loop.Load() == l {
			l.read(sd)
		}
	}
	clear(line)
	l.spare = line[:0]
}

// timeout is how long the loop may wait, in milliseconds; -1 is for ever.
func (l *Loop) timeout() int {
	if len(l.ready) > 0 || l.idling {
		return 0
	}
	switch {
	case l.ration.short || l.resting():
		return 1
	case len(l.timers)+len(l.line) > 0:
		return 50
	}
	return -1
}

func (l *Loop) runTimers() {
	if len(l.timers) == 0 {
		return
	}
	now := time.Now()
	kept := l.timers[:0]
	for _, p := range l.timers {
		switch {
		case p.sides[0].fd < 0 || p.due.IsZero() || p.loop.Load() != l:
		case now.Before(p.due):
			kept = append(kept, p)
		default:
			if !p.linger {
				p.session.cut("its peer did not take a Goodbye in time")
			}
			l.drop(p, p.session.reason)
		}
	}
	l.timers = kept
}
