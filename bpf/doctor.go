package bpf

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// State is the verdict of a [Check].
type State uint8

const (
	// StateOK needs nothing.
	StateOK State = iota + 1
	// StateWarn works, but weakens what attribution proves, or may stop working.
	StateWarn
	// StateFail keeps the hooks from working.
	StateFail
)

func (s State) String() string {
	switch s {
	case StateOK:
		return "ok"
	case StateWarn:
		return "warn"
	case StateFail:
		return "fail"
	}
	return "unknown"
}

// Check is one fact about the host that attribution depends on.
type Check struct {
	Name   string
	State  State
	Found  string // what is there
	Remedy string // what to do; "" with StateOK
}

// Probe looks at the host and changes nothing on it. It reports facts in a fixed
// order; whether the hooks do attach, [Open] tells, and whether they work,
// SelfProbe.
func Probe() []Check {
	h, err := readHierarchy()
	return []Check{
		checkKernel(kernelRelease()),
		checkNamespaces(initialNamespaces()),
		checkCaps(effectiveCaps()),
		checkCgroup(h, err, hasCap(unix.CAP_SYS_ADMIN)),
		checkCgroupNamespace(readLink("/proc/self/ns/cgroup")),
		checkUnprivileged(readTrimmed("/proc/sys/kernel/unprivileged_bpf_disabled")),
		checkLockdown(readTrimmed("/sys/kernel/security/lockdown")),
		checkSeccomp(statusField("Seccomp")),
		checkPtrace(readTrimmed("/proc/sys/kernel/yama/ptrace_scope")),
		checkMPTCP(readTrimmed("/proc/sys/net/mptcp/enabled")),
		checkProcfs(procfsUsable()),
	}
}

// readTrimmed is a file's text, "" when it can't be read.
func readTrimmed(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func readLink(path string) string {
	s, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return s
}

func checkKernel(release string) Check {
	c := Check{Name: "kernel", State: StateOK, Found: release}
	if !atLeast(release, 5, 15) {
		c.State, c.Remedy = StateFail, "run kernel 5.15 or later: earlier ones have no network namespace cookie in sockops"
	}
	return c
}

// atLeast compares the first two numbers of a kernel release. What can't be read
// is older than everything.
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, err := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 || err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

func checkNamespaces(err error) Check {
	c := Check{Name: "namespaces", State: StateOK, Found: "the host's PID and time namespaces"}
	if e, ok := err.(*NotSupportedError); ok {
		c.State, c.Found, c.Remedy = StateFail, e.Reason, e.Remedy
	}
	return c
}

func checkCaps(caps uint64) Check {
	c := Check{Name: "capabilities", State: StateOK}
	has := func(bit int) bool { return caps&(1<<bit) != 0 }
	var found []string
	for _, k := range []struct {
		bit  int
		name string
	}{{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}} {
		if has(k.bit) {
			found = append(found, k.name)
		}
	}
	c.Found = "effective: " + strings.Join(found, " ")
	if len(found) == 0 {
		c.Found = "effective: none of those that matter"
	}
	switch {
	case !has(unix.CAP_NET_ADMIN), !has(unix.CAP_BPF) && !has(unix.CAP_SYS_ADMIN):
		c.State, c.Remedy = StateFail, "grant CAP_BPF and CAP_NET_ADMIN (AmbientCapabilities= in the unit)"
	case !has(unix.CAP_SYS_PTRACE):
		c.State, c.Remedy = StateWarn, "executables of other users' processes stay unnamed without CAP_SYS_PTRACE; PIDs don't need it"
	}
	return c
}

func checkCgroup(h hierarchy, err error, mayMount bool) Check {
	c := Check{Name: "cgroup2", State: StateOK, Found: h.String()}
	switch {
	case err != nil:
		c.State, c.Found, c.Remedy = StateFail, err.Error(), "mount /proc"
	case h.path != "":
		c.Found += ", at " + h.path
	case mayMount:
		c.State, c.Found = StateWarn, h.String()+"; a private mount will be used"
		c.Remedy = "mount cgroup2 to do without CAP_SYS_ADMIN"
	default:
		c.State, c.Remedy = StateFail, "mount -t cgroup2 none /sys/fs/cgroup/unified, or grant CAP_SYS_ADMIN for a private mount"
	}
	return c
}

func checkCgroupNamespace(link string) Check {
	c := Check{Name: "cgroup namespace", State: StateOK, Found: "the host's"}
	if link != "cgroup:[4026531835]" {
		c.State, c.Found = StateWarn, "one of our own"
		c.Remedy = "processes outside our part of the cgroup tree are unknown: run in the host's cgroup namespace"
	}
	return c
}

func checkUnprivileged(v string) Check {
	c := Check{Name: "unprivileged bpf", State: StateOK, Found: "kernel.unprivileged_bpf_disabled = " + v}
	switch v {
	case "1", "2":
	case "":
		c.Found = "not configurable on this kernel"
	default:
		c.State, c.Remedy = StateWarn, "we don't need it: sysctl kernel.unprivileged_bpf_disabled=2"
	}
	return c
}

func checkLockdown(v string) Check {
	c := Check{Name: "lockdown", State: StateOK, Found: v}
	if v == "" {
		c.Found = "not built in"
	}
	if strings.Contains(v, "[confidentiality]") {
		c.Found = v + "; the programs read no kernel memory, so it doesn't matter"
	}
	return c
}

func checkSeccomp(v string) Check {
	c := Check{Name: "seccomp", State: StateOK, Found: "no filter"}
	if v != "" && v != "0" {
		c.State, c.Found = StateWarn, "a filter is active (mode "+v+")"
		c.Remedy = "let bpf(2), pidfd_open(2) and, without a cgroup2 mount, fsopen(2) and fsmount(2) through"
	}
	return c
}

func checkPtrace(v string) Check {
	c := Check{Name: "ptrace", State: StateOK, Found: "kernel.yama.ptrace_scope = " + v}
	const weak = "a process of the same user can attach to a module and use its socket: set kernel.yama.ptrace_scope to 1 or higher"
	switch v {
	case "1", "2", "3":
	case "":
		c.State, c.Found, c.Remedy = StateWarn, "Yama is not there, which is as ptrace_scope 0", weak
	default:
		c.State, c.Remedy = StateWarn, weak
	}
	return c
}

func checkMPTCP(v string) Check {
	switch v {
	case "":
		return Check{Name: "mptcp", State: StateOK, Found: "not built in"}
	case "0":
		return Check{Name: "mptcp", State: StateOK, Found: "net.mptcp.enabled = 0"}
	}
	return Check{Name: "mptcp", State: StateOK,
		Found: fmt.Sprintf("net.mptcp.enabled = %s; our listeners fall back to plain TCP", v)}
}

func checkProcfs(err error) Check {
	c := Check{Name: "procfs", State: StateOK, Found: "shows sockets and their holders"}
	if e, ok := err.(*NotSupportedError); ok {
		c.State, c.Found, c.Remedy = StateWarn, e.Reason, e.Remedy
	}
	return c
}
