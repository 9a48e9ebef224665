package proxy

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The loop's reads and writes go to the kernel without telling the scheduler:
// its sockets never block, so there is nothing for it to do meanwhile, and the
// telling costs as much as the call. Only the loop's wait may block.

func rawRead(fd int, b []byte) (int, error) {
	return rawCall(unix.SYS_READ, fd, b)
}

func rawWrite(fd int, b []byte) (int, error) {
	return rawCall(unix.SYS_WRITE, fd, b)
}

func rawCall(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
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
