package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// entries counts what is in a map.
func entries(t testing.TB, m *ebpf.Map) int {
	t.Helper()
	key := make([]byte, m.KeySize())
	value := make([]byte, m.ValueSize())
	n := 0
	it := m.Iterate()
	for it.Next(&key, &value) {
		n++
	}
	require.NoError(t, it.Err())
	return n
}

func TestDetachedBehindOurBack_TheSelfProbeNotices(t *testing.T) {
	for i, at := range attachments {
		t.Run(at.program, func(t *testing.T) {
			a := newTestAttributor(t, Params{})
			require.NoError(t, a.SelfProbe(testContext(t)))
			require.NoError(t, a.hooks.links[i].Detach())
			err := a.SelfProbe(testContext(t))
			require.ErrorIs(t, err, ErrNotAttributed)
			require.NotErrorIs(t, err, ErrNotSupported)
			require.ErrorContains(t, err, at.program)
		})
	}
}

func TestDetached_ConnectsAreUnknown(t *testing.T) {
	for _, i := range []int{0, 2} { // carry, note_connect4
		a := newTestAttributor(t, Params{})
		l := newTestListener(t, "127.0.0.1:0")
		require.NoError(t, a.SetPort(portOf(l), RoleOwn))
		require.NoError(t, a.hooks.links[i].Detach())
		newChild(t).do(t, "connect v4 %s", l.Addr())
		require.False(t, mustPeer(t, a, mustAccept(t, l)).Process().Known, attachments[i].program)
	}
}

// The connect itself finds out what the links don't say: here the group is one
// that we are not in.
func TestSelfProbe_SeesThatWeAreOutsideTheGroup(t *testing.T) {
	needHooks(t)
	h, err := readHierarchy()
	require.NoError(t, err)
	if h.path == "" {
		t.Skip("a cgroup2 mount is missing")
	}
	dir := filepath.Join(h.path, fmt.Sprintf("scopeward-test-%d", os.Getpid()))
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
	a := newTestAttributor(t, Params{CgroupPath: dir})
	require.ErrorIs(t, a.SelfProbe(testContext(t)), ErrNotAttributed)
	require.Equal(t, "attached to "+dir, a.Status().Why)
}

func TestSelfProbe_IsNoConnectionOfAnybodys(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	require.NoError(t, a.SelfProbe(testContext(t)))
	st := a.Status()
	require.Zero(t, st.Known)
	require.Zero(t, st.Unknown)
	require.Equal(t, 1, entries(t, a.hooks.ports), "its ports are gone again")
}

func TestMapFull_Accepted(t *testing.T) {
	const room, connects = 4, 10
	a := newTestAttributor(t, Params{room: room})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c := newChild(t)
	for range connects {
		c.do(t, "connect v4 %s", l.Addr())
	}
	for i := range connects {
		got := mustPeer(t, a, mustAccept(t, l)).Process()
		require.Equal(t, i < room, got.Known, "connection %d: %s", i, got.Reason)
		if !got.Known {
			require.Contains(t, got.Reason, "a full map lost 6")
		}
	}
	require.Equal(t, Counts{Accepted: connects - room}, a.Status().Lost)

	// There is room again: so there are names again.
	c.do(t, "connect v4 %s", l.Addr())
	require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
}

// Connects that fail before the first SYN fill the first map, while their
// sockets are open.
func TestMapFull_Connects(t *testing.T) {
	const room = 4
	a := newTestAttributor(t, Params{room: room})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	fds := make([]int, room)
	for i := range fds {
		fds[i] = failBeforeSYN(t, portOf(l), 0)
	}
	require.Equal(t, room, entries(t, a.hooks.connects))
	c := newChild(t)
	c.do(t, "connect v4 %s", l.Addr())
	require.False(t, mustPeer(t, a, mustAccept(t, l)).Process().Known)
	require.EqualValues(t, 1, a.Status().Lost.Connects)

	for _, fd := range fds {
		require.NoError(t, unix.Close(fd))
	}
	require.Zero(t, entries(t, a.hooks.connects), "closing a socket takes its note along")
	c.do(t, "connect v4 %s", l.Addr())
	require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
}

// failBeforeSYN connects from a loopback address to one that can't be reached
// from there.
func failBeforeSYN(t *testing.T, port uint16, proto int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{255, 255, 255, 255}})
	require.Error(t, err)
	require.NotEqual(t, unix.EINPROGRESS, err)
	return fd
}

// Clients whose SYNs are dropped fill the second map.
func TestMapFull_Tuples(t *testing.T) {
	const room = 4
	a := newTestAttributor(t, Params{room: room})
	stuck, l := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPorts(RoleOwn, portOf(stuck), portOf(l)))
	require.NoError(t, shrinkQueue(stuck))
	waiting, c := newChild(t), newChild(t)
	for range 1 + room {
		waiting.do(t, "connect v4-nonblocking %s", stuck.Addr())
	}
	require.Equal(t, room, entries(t, a.hooks.tuples))
	c.do(t, "connect v4 %s", l.Addr())
	require.False(t, mustPeer(t, a, mustAccept(t, l)).Process().Known)
	require.EqualValues(t, 1, a.Status().Lost.Tuples)

	waiting.do(t, "close")
	require.Zero(t, entries(t, a.hooks.tuples), "closing a socket takes its tuple along")
	c.do(t, "connect v4 %s", l.Addr())
	require.Equal(t, c.pid(), mustKnow(t, a, mustAccept(t, l)).PID)
}

func TestNothingIsLeftBehind(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l, refused := newTestListener(t, "127.0.0.1:0"), newTestListener(t, nobodysAddr)
	require.NoError(t, a.SetPorts(RoleOwn, portOf(l), portOf(refused)))
	gone := refused.Addr()
	require.NoError(t, refused.Close())
	c := newChild(t)
	for range 20 {
		c.do(t, "connect v4 %s", l.Addr()) // closed before it is accepted
		c.start(t, "connect v4 %s", gone)  // refused
		require.True(t, c.out.Scan())
		require.Contains(t, c.out.Text(), "refused")
	}
	c.do(t, "close")
	c.end()
	l.Close()
	for _, m := range []*ebpf.Map{a.hooks.connects, a.hooks.tuples, a.hooks.accepted} {
		require.Eventually(t, func() bool { return entries(t, m) == 0 }, time.Minute, time.Millisecond, m.String())
	}
}

// A multi-path client that fails has no hook at its end: the sweep takes its note.
func TestSweep_TakesOldRecordsOnly(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	require.NoError(t, unix.Close(failBeforeSYN(t, portOf(l), unix.IPPROTO_MPTCP)))
	c := newChild(t)
	c.do(t, "connect v4 %s", l.Addr())

	a.hooks.sweep(bootNow())
	require.Equal(t, 1, entries(t, a.hooks.accepted), "it was made just now")
	a.hooks.sweep(bootNow() + maxAgeNS + 1)
	require.Zero(t, entries(t, a.hooks.connects))
	require.Zero(t, entries(t, a.hooks.accepted))
	require.False(t, mustPeer(t, a, mustAccept(t, l)).Process().Known, "late is unknown, never a guess")
}

func TestNoGroup_IsNotSupported(t *testing.T) {
	for _, path := range []string{"/nowhere/at/all", "/proc", "/tmp"} {
		_, err := Open(Params{CgroupPath: path})
		require.ErrorIs(t, err, ErrNotSupported)
		var ns *NotSupportedError
		require.ErrorAs(t, err, &ns)
		require.Contains(t, ns.Reason, path)
		require.NotEmpty(t, ns.Remedy)
	}
}

// withoutCgroup2 is a child where only version 1 is mounted.
func withoutCgroup2(t *testing.T, options ...childOption) *child {
	t.Helper()
	h, err := readHierarchy()
	require.NoError(t, err)
	if h.path == "" {
		t.Skip("a cgroup2 mount to take away is missing")
	}
	c := newChild(t, append(options, inNamespaces(syscall.CLONE_NEWNS))...)
	c.do(t, "umount %s", h.path)
	return c
}

func TestOnlyVersion1_APrivateMountIsMade(t *testing.T) {
	needRoot(t)
	needHooks(t)
	require.Equal(t, "attached to private cgroup2", withoutCgroup2(t).do(t, "open"))
}

func TestOnlyVersion1_AndNoRightToMount(t *testing.T) {
	needRoot(t)
	needHooks(t)
	c := withoutCgroup2(t)
	answer := c.do(t, "open-as-nobody")
	require.Contains(t, answer, "unsupported: no cgroup2 is mounted")
	require.Contains(t, answer, "CAP_SYS_ADMIN")
}

func TestNoCapabilities_IsNotSupported(t *testing.T) {
	needRoot(t)
	needHooks(t)
	c := newChild(t, asNobody())
	answer := c.do(t, "open")
	require.Contains(t, answer, "unsupported: ")
	require.Contains(t, answer, "grant CAP_BPF and CAP_NET_ADMIN")

	// The fallback says so.
	answer = c.do(t, "openany")
	require.Contains(t, answer, "procfs: "+ErrNotSupported.Error())
}

func TestOneCapability_TheOtherIsNamed(t *testing.T) {
	needRoot(t)
	needHooks(t)
	require.Contains(t, newChild(t, asNobody(unix.CAP_BPF)).do(t, "open"), "grant CAP_NET_ADMIN")
	require.Contains(t, newChild(t, asNobody(unix.CAP_NET_ADMIN)).do(t, "open"), "grant CAP_BPF")
}

func TestNamespacesOfOurOwn_AreNotSupported(t *testing.T) {
	needRoot(t)
	needHooks(t)
	c := newChild(t, inNamespaces(syscall.CLONE_NEWPID|syscall.CLONE_NEWNS))
	c.do(t, "proc")
	require.Contains(t, c.do(t, "open"), "unsupported: we run in a PID namespace of our own")
	require.Contains(t, c.do(t, "openany"), "procfs: ")

	c = newChild(t, func(cmd *exec.Cmd) { cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWTIME })
	require.Contains(t, c.do(t, "open"), "unsupported: we run in a time namespace of our own")
	require.Contains(t, c.do(t, "openany"), "procfs: ")
}

// A program of somebody else's that sends a connect to us which went elsewhere.
func TestRewrittenDestination_IsUnknown(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l, elsewhere := newTestListener(t, "127.0.0.1:0"), newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	rewritePort(t, portOf(elsewhere), portOf(l))
	c := newChild(t)
	c.do(t, "connect v4 %s", elsewhere.Addr())
	got := mustPeer(t, a, mustAccept(t, l)).Process()
	require.False(t, got.Known)
	require.NotEmpty(t, got.Reason)
}

// rewritePort attaches a connect4 program that turns one port into another.
func rewritePort(t *testing.T, from, to uint16) {
	t.Helper()
	const userPort = 24 // in struct bpf_sock_addr
	swap := func(p uint16) int32 { return int32(p>>8 | p<<8) }
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:       ebpf.CGroupSockAddr,
		AttachType: ebpf.AttachCGroupInet4Connect,
		License:    "MIT",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, userPort, asm.Word),
			asm.JNE.Imm(asm.R2, swap(from), "out"),
			asm.Mov.Imm(asm.R2, swap(to)),
			asm.StoreMem(asm.R1, userPort, asm.R2, asm.Word),
			asm.Mov.Imm(asm.R0, 1).WithSymbol("out"),
			asm.Return(),
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { prog.Close() })
	dir, err := openCgroup("")
	require.NoError(t, err)
	defer dir.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path:    fmt.Sprintf("/proc/self/fd/%d", dir.Fd()),
		Attach:  ebpf.AttachCGroupInet4Connect,
		Program: prog,
	})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
}

func TestTwoCapabilitiesAreEnough(t *testing.T) {
	needRoot(t)
	needHooks(t)
	c := newChild(t, asNobody(unix.CAP_BPF, unix.CAP_NET_ADMIN))
	require.Contains(t, c.do(t, "open"), "attached to ")
	require.Contains(t, c.do(t, "openany"), "ebpf: ")
}
