package bpf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uringConnect connects an IPv4 socket through io_uring; worker makes a kernel
// worker thread do it rather than the submitting one.
func uringConnect(fd int, addr string, worker bool) error {
	const (
		opConnect   = 16
		asyncFlag   = 1 << 4
		getEvents   = 1
		offsetSQ    = 0
		offsetCQ    = 0x8000000
		offsetSQEs  = 0x10000000
		sizeOfSQE   = 64
		sizeOfParam = 120
	)
	params := make([]byte, sizeOfParam)
	ring, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	if e != 0 {
		return fmt.Errorf("io_uring_setup: %w", e)
	}
	defer unix.Close(int(ring))
	u32 := func(b []byte, off int) uint32 { return binary.NativeEndian.Uint32(b[off:]) }

	// struct io_uring_params: ten words, then sq_off and cq_off of ten words each.
	const sqOff, cqOff = 40, 80
	sqTail, sqArray := int(u32(params, sqOff+4)), int(u32(params, sqOff+24))
	cqHead, cqTail, cqes := int(u32(params, cqOff)), int(u32(params, cqOff+4)), int(u32(params, cqOff+20))

	sq, err := unix.Mmap(int(ring), offsetSQ, sqArray+4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("submission ring: %w", err)
	}
	defer func() { _ = unix.Munmap(sq) }()
	cq, err := unix.Mmap(int(ring), offsetCQ, cqes+16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("completion ring: %w", err)
	}
	defer func() { _ = unix.Munmap(cq) }()
	sqe, err := unix.Mmap(int(ring), offsetSQEs, sizeOfSQE, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("submission entries: %w", err)
	}
	defer func() { _ = unix.Munmap(sqe) }()

	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: ap.Addr().As4()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:], ap.Port())
	sqe[0] = opConnect
	if worker {
		sqe[1] = asyncFlag
	}
	binary.NativeEndian.PutUint32(sqe[4:], uint32(fd))
	binary.NativeEndian.PutUint64(sqe[8:], unix.SizeofSockaddrInet4)
	var pin runtime.Pinner
	pin.Pin(&sa)
	defer pin.Unpin()
	binary.NativeEndian.PutUint64(sqe[16:], uint64(uintptr(unsafe.Pointer(&sa))))
	binary.NativeEndian.PutUint32(sq[sqArray:], 0)
	binary.NativeEndian.PutUint32(sq[sqTail:], u32(sq, sqTail)+1)

	// A signal may end the wait after the submission, and only the ring tells.
	tail := (*uint32)(unsafe.Pointer(&cq[cqTail]))
	for submit := uintptr(1); atomic.LoadUint32(tail) == u32(cq, cqHead); submit = 0 {
		_, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, ring, submit, 1, getEvents, 0, 0)
		if e != 0 && e != unix.EINTR {
			return fmt.Errorf("io_uring_enter: %w", e)
		}
	}
	if res := int32(u32(cq, cqes+8)); res < 0 {
		return fmt.Errorf("connect: %w", unix.Errno(-res))
	}
	binary.NativeEndian.PutUint32(cq[cqHead:], u32(cq, cqHead)+1)
	return nil
}
