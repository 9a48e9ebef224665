package bpf

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// originLen is the size of struct origin in attribute.c.
const originLen = 24

// origin is who called connect, as the kernel noted it.
type origin struct {
	tgid   uint32 // initial PID namespace; 0: not known
	uid    uint32 // initial user namespace
	at     uint64 // CLOCK_BOOTTIME, ns
	client uint64 // cookie of the client's socket
}

// decodeOrigin reads a record of the maps or of the ring. It says false for
// anything that is not exactly one record.
func decodeOrigin(b []byte) (origin, bool) {
	if len(b) != originLen {
		return origin{}, false
	}
	return origin{
		tgid:   binary.NativeEndian.Uint32(b[0:]),
		uid:    binary.NativeEndian.Uint32(b[4:]),
		at:     binary.NativeEndian.Uint64(b[8:]),
		client: binary.NativeEndian.Uint64(b[16:]),
	}, true
}

// bootNow is CLOCK_BOOTTIME in ns, the clock of every stamp here.
func bootNow() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// wallTime turns a boot-time stamp into wall time. A later step of the wall
// clock moves it.
func wallTime(at uint64) time.Time {
	return time.Now().Add(-time.Duration(bootNow() - at))
}
