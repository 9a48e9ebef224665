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
