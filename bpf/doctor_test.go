package bpf

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestProbe_EveryCheckIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Probe() {
		require.NotEmpty(t, c.Name)
		require.NotEmpty(t, c.Found, c.Name)
		require.NotEqual(t, "unknown", c.State.String(), c.Name)
		require.Equal(t, c.State == StateOK, c.Remedy == "", c.Name)
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
	}
}

func TestChecks(t *testing.T) {
	const bpfAndNet, admin, ptrace = 1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN, 1 << unix.CAP_SYS_ADMIN, 1 << unix.CAP_SYS_PTRACE
	for _, tc := range []struct {
		name   string
		got    Check
		want   State
		remedy string // a part of it
	}{
		{"old kernel", checkKernel("5.10.0-23-amd64"), StateFail, "5.15"},
		{"oldest kernel that will do", checkKernel("5.15.0"), StateOK, ""},
		{"new kernel", checkKernel("6.18.44-fc"), StateOK, ""},
		{"strange kernel", checkKernel("unknown"), StateFail, "5.15"},
		{"host's namespaces", checkNamespaces(nil), StateOK, ""},
		{"a PID namespace", checkNamespaces(&NotSupportedError{Reason: "r", Remedy: "m"}), StateFail, "m"},
		{"all capabilities", checkCaps(bpfAndNet | ptrace), StateOK, ""},
		{"root of old", checkCaps(1<<unix.CAP_NET_ADMIN | admin | ptrace), StateOK, ""},
		{"no ptrace", checkCaps(bpfAndNet), StateWarn, "CAP_SYS_PTRACE"},
		{"no net", checkCaps(1<<unix.CAP_BPF | admin), StateFail, "CAP_NET_ADMIN"},
		{"none", checkCaps(0), StateFail, "CAP_BPF"},
		{"unified", checkCgroup(hierarchy{path: "/sys/fs/cgroup"}, nil, false), StateOK, ""},
		{"hybrid", checkCgroup(hierarchy{path: "/sys/fs/cgroup/unified", v1: true}, nil, false), StateOK, ""},
		{"version 1, may mount", checkCgroup(hierarchy{v1: true}, nil, true), StateWarn, "CAP_SYS_ADMIN"},
		{"version 1, may not", checkCgroup(hierarchy{v1: true}, nil, false), StateFail, "mount"},
		{"no mounts to read", checkCgroup(hierarchy{}, errors.New("gone"), true), StateFail, "/proc"},
		{"cgroup namespace", checkCgroupNamespace("cgroup:[4026532999]"), StateWarn, "host's"},
		{"unprivileged bpf off", checkUnprivileged("2"), StateOK, ""},
		{"unprivileged bpf on", checkUnprivileged("0"), StateWarn, "sysctl"},
		{"lockdown", checkLockdown("none integrity [confidentiality]"), StateOK, ""},
		{"no seccomp", checkSeccomp("0"), StateOK, ""},
		{"seccomp", checkSeccomp("2"), StateWarn, "bpf(2)"},
		{"no yama", checkPtrace(""), StateWarn, "same user"},
		{"ptrace 0", checkPtrace("0"), StateWarn, "same user"},
		{"ptrace 1", checkPtrace("1"), StateOK, ""},
		{"no mptcp", checkMPTCP(""), StateOK, ""},
		{"mptcp", checkMPTCP("1"), StateOK, ""},
		{"no procfs", checkProcfs(&NotSupportedError{Reason: "r", Remedy: "m"}), StateWarn, "m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.got.State)
			require.Contains(t, tc.got.Remedy, tc.remedy)
			require.NotEmpty(t, tc.got.Found)
			require.Equal(t, tc.want == StateOK, tc.got.Remedy == "")
		})
	}
}

func TestParseMounts(t *testing.T) {
	for _, tc := range []struct{ name, mounts, kind, path string }{
		{"unified", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "unified", "/sys/fs/cgroup"},
		{"hybrid", "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n", "hybrid", "/sys/fs/cgroup/unified"},
		{"version 1", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", "version 1 only", ""},
		{"none", "proc /proc proc rw 0 0\n\nx\n", "none", ""},
		{"a path with spaces", "none /mnt/my\\040group cgroup2 rw 0 0\n", "unified", "/mnt/my group"},
		{"the first counts", "none /a cgroup2 rw 0 0\nnone /b cgroup2 rw 0 0\n", "unified", "/a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := parseMounts([]byte(tc.mounts))
			require.Equal(t, tc.kind, h.String())
			require.Equal(t, tc.path, h.path)
		})
	}
}

// Faults of the moment are no reason to fall back.
func TestExplain_OnlyWhatIsMissingIsNotSupported(t *testing.T) {
	for err, want := range map[error]bool{
		unix.EPERM: true, unix.ENOSYS: true, unix.EINVAL: true,
		unix.ENOMEM: false, unix.EMFILE: false, unix.EBUSY: false,
	} {
		got := explain("x", err)
		require.Equal(t, want, errors.Is(got, ErrNotSupported), err)
		require.ErrorIs(t, got, err)
	}
}
