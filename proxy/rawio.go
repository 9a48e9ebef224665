package proxy

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A loop goes to the kernel without telling the runtime's scheduler: its sockets
// never block, so there is nothing to schedule meanwhile, and its wait keeps the
// processor of the runtime's that it brought (see giveRoom), since being robbed of it
// at every wait costs more than the relay does. A collection stops the loop as it
// stops any running thread: by a signal, which ends the wait.

// kernel is what a loop asks of the kernel for what it relays, and all of it.
type kernel interface {
	read(fd int, b []byte) (int, error)
	write(fd int, b []byte) (int, error)

	// wait waits for events, for ms milliseconds or, when ms is negative, for ever.
	wait(poll int, events []unix.EpollEvent, ms int) (int, error)
}

// rawKernel asks without the runtime's knowledge.
type rawKernel struct{}

func (rawKernel) read(fd int, b []byte) (int, error) { return rawCall(unix.SYS_RECVFROM, fd, b) }

func (rawKernel) write(fd int, b []byte) (int, error) { return rawCall(unix.SYS_SENDTO, fd, b) }

func rawCall(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// wait is interrupted when the runtime wants the processor that a loop keeps: every
// ten milliseconds, if it lasts. Then it waits as any other call does, and gives the
// processor up: an idle loop would be woken a hundred times a second for nothing.
func (rawKernel) wait(poll int, events []unix.EpollEvent, ms int) (int, error) {
	n, err := rawWait(poll, events, ms)
	if err == unix.EINTR && ms != 0 {
		return unix.EpollWait(poll, events, ms)
	}
	return n, err
}

func rawWait(poll int, events []unix.EpollEvent, ms int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(poll), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), uintptr(ms), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// room guards the one number of the process that every loop changes.
var room sync.Mutex

// giveRoom adds n to the runtime's processors: each loop brings its own, so that
// everybody else has as many as without it, and takes it along when it ends.
func giveRoom(n int) {
	room.Lock()
	defer room.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// beInTurn sets when the calling thread runs once it is woken. SCHED_BATCH: in its
// waker's turn or later, and so it finds more to do at once. SCHED_NORMAL: as soon as
// it can. A kernel that refuses costs speed and nothing else, and a policy that is
// neither was somebody's choice.
func beInTurn(policy uint32) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && attr.Policy != policy && (attr.Policy == unix.SCHED_NORMAL || attr.Policy == unix.SCHED_BATCH) {
		attr.Policy = policy
		_ = unix.SchedSetAttr(0, attr, 0)
	}
}
