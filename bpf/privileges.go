package bpf

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// neededCaps are what loading and attaching take. On a kernel before 5.8
// CAP_SYS_ADMIN stands for the first.
var neededCaps = [...]struct {
	bit  int
	name string
}{
	{unix.CAP_BPF, "CAP_BPF"},
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"},
}

// statusField reads one line of /proc/self/status, "" when it is not there.
func statusField(name string) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// effectiveCaps is our effective capability set.
func effectiveCaps() uint64 {
	v, err := strconv.ParseUint(statusField("CapEff"), 16, 64)
	if err != nil {
		return 0
	}
	return v
}

func hasCap(bit int) bool { return effectiveCaps()&(1<<bit) != 0 }

// missingCaps names what we lack, "" when nothing. CAP_SYS_ADMIN counts as
// CAP_BPF, as it does in the kernel.
func missingCaps() string {
	var names []string
	for _, c := range neededCaps {
		if !hasCap(c.bit) && (c.bit != unix.CAP_BPF || !hasCap(unix.CAP_SYS_ADMIN)) {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, " and ")
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
