package proxy

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A loop goes to the kernel without telling the runtime's scheduler: its sockets
// never block, so there is nothing to schedule meanwhile, and its wait keeps the
// processor of the runtime's that it has (see [Loops]), since being robbed of it
// at every wait costs more than the relay does. A collection stops the loop as it
// stops any running thread: by a signal, which ends the wait.

func rawRead(fd int, b []byte) (int, error) {
	return rawCall(unix.SYS_RECVFROM, fd, b)
}

func rawWrite(fd int, b []byte) (int, error) {
	return rawCall(unix.SYS_SENDTO, fd, b)
}

func rawCall(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// rawWait waits for events, for ms milliseconds or, when ms is negative, for
// ever.
func rawWait(poll int, events []unix.EpollEvent, ms int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(poll), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), uintptr(ms), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// giveRoom sees to it that the runtime has more processors than the loops keep to
// themselves, so that everybody else runs.
func giveRoom() {
	if n := Loops + 2; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
}

// preferBatches makes the calling thread wait for its waker's time slice when it
// is woken, and so find more to do at once. A kernel that refuses it costs speed
// and nothing else.
func preferBatches() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Policy = unix.SCHED_BATCH
		_ = unix.SchedSetAttr(0, attr, 0)
	}
}
