package sidecar

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// forsaken are the capabilities that attaching takes and running does not.
const forsaken = 1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN

// errKept says that privileges could not be given up on every thread.
var errKept = errors.New("capabilities are kept")

// forsake gives up what attaching took, for good and on every thread: what comes
// by our sockets later finds a process that can do no more than its user. Root
// keeps what is root's, and so does a kernel before 5.19 that forbids
// unprivileged bpf: there the maps can't be read without CAP_BPF.
func forsake() error {
	var drop uint64 = forsaken
	if needsBPF() {
		drop &^= 1 << unix.CAP_BPF
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("%w: %w", errKept, err)
	}
	permitted := uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32
	if permitted&drop == 0 || permitted&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return nil
	}
	for i := range data {
		mask := ^uint32(drop >> (32 * i))
		data[i].Effective &= mask
		data[i].Permitted &= mask
		data[i].Inheritable &= mask // and with it the ambient set
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET,
		uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&data[0])), 0); errno != 0 {
		if errno == syscall.ENOTSUP {
			return fmt.Errorf("%w: this program is built with cgo: build it with CGO_ENABLED=0", errKept)
		}
		return fmt.Errorf("%w: %w", errKept, errno)
	}
	return nil
}

// forsake is [forsake] with a word to the operator.
func (s *Sidecar) forsake() {
	if err := forsake(); err != nil {
		s.log.Warn("privileges that are needed no longer were not given up", zap.Error(err))
	}
}

// needsBPF reports whether this kernel asks for CAP_BPF even of those who hold
// the maps already.
func needsBPF() bool {
	forbidden, err := os.ReadFile("/proc/sys/kernel/unprivileged_bpf_disabled")
	if err != nil || strings.TrimSpace(string(forbidden)) == "0" {
		return false
	}
	var u unix.Utsname
	var major, minor int
	if err := unix.Uname(&u); err != nil {
		return true
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); n != 2 {
		return true
	}
	return major < 5 || major == 5 && minor < 19
}
