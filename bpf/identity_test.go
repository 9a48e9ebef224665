package bpf

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForkAndPass_TheConnectorIsNamedAndNotTheHolder(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	connector, holder := newChild(t), newChild(t)
	connector.do(t, "connect v4 %s", l.Addr())
	connector.handTo(t, holder)
	s := mustAccept(t, l)
	p := mustPeer(t, a, s)
	require.True(t, p.Process().Known)
	require.Equal(t, connector.pid(), p.Process().PID)
	require.True(t, p.Alive())

	// The holder keeps the connection, the connector's name and no life in it.
	connector.end()
	require.False(t, p.Alive())
	holder.do(t, "say hello")
	b := make([]byte, 5)
	_, err := s.Read(b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))
	require.False(t, p.Alive())
}

func TestPassedBeforeAccept_TheConnectorHasEnded(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	connector, holder := newChild(t), newChild(t)
	connector.do(t, "connect v4 %s", l.Addr())
	connector.handTo(t, holder)
	connector.end()
	got := mustPeer(t, a, mustAccept(t, l)).Process()
	require.False(t, got.Known)
	require.Equal(t, connector.pid(), got.PID, "for the log")
	require.Equal(t, reasonEnded, got.Reason)
	require.Equal(t, Instance{}, got.Instance())
}

// A reconnect keeps the client's cookie and changes the process. Each connection
// belongs to the one who made it, also when it is asked about later.
func TestReconnectOfAPassedSocket_EachConnectionHasItsOwnProcess(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	one, two := newChild(t), newChild(t)
	one.do(t, "connect v4 %s", l.Addr())
	one.handTo(t, two)
	first := mustAccept(t, l)
	two.do(t, "again %s", l.Addr())
	second := mustAccept(t, l)
	require.Equal(t, two.pid(), mustKnow(t, a, second).PID)
	// The first connection was reset; its record went with its socket.
	got := mustPeer(t, a, first).Process()
	if got.Known {
		require.Equal(t, one.pid(), got.PID)
	}
	require.NotEqual(t, two.pid(), got.PID)
}

func TestExecAfterConnect_SameProcessNewProgram(t *testing.T) {
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c := newChild(t)
	before, err := InstanceOf(c.pid())
	require.NoError(t, err)
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	c.do(t, "connect v4 %s", l.Addr())
	c.do(t, "exec %s", cat)
	require.Eventually(t, func() bool {
		exe, err := os.Readlink("/proc/" + strconv.Itoa(c.pid()) + "/exe")
		return err == nil && exe == cat
	}, time.Minute, time.Millisecond)
	p := mustPeer(t, a, mustAccept(t, l))
	got := p.Process()
	require.True(t, got.Known, got.Reason)
	require.Equal(t, before, got.Instance())
	require.Equal(t, cat, got.Exe)
	require.True(t, p.Alive())
}

// The PID of a dead connector is given to another process while the connection
// waits to be accepted.
func TestRecycledPID_IsAnotherProcess(t *testing.T) {
	needRoot(t)
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	connector, holder := newChild(t), newChild(t)
	connector.do(t, "connect v4 %s", l.Addr())
	connector.handTo(t, holder)
	connector.do(t, "connect v4 %s", l.Addr())
	connector.handTo(t, holder)

	early := mustPeer(t, a, mustAccept(t, l))
	require.True(t, early.Process().Known, early.Process().Reason)
	late := mustAccept(t, l)
	connector.end()

	// Start times tell lives apart that are a tick apart.
	tick := bootNow() / nsPerTick
	require.Eventually(t, func() bool { return bootNow()/nsPerTick > tick+1 }, time.Minute, time.Millisecond)
	thief := mustStartWithPID(t, connector.pid())
	id, err := InstanceOf(thief)
	require.NoError(t, err)
	require.Equal(t, connector.pid(), id.PID)

	require.False(t, early.Alive(), "the pidfd is the connector's")
	require.False(t, early.Process().Instance().Alive(), "the start time is the connector's")
	require.NotEqual(t, id, early.Process().Instance())
	same, err := SameOrDescendant(early.Process().Instance(), id)
	require.False(t, same, err)

	got := mustPeer(t, a, late).Process()
	require.False(t, got.Known)
	require.Equal(t, reasonRecycled, got.Reason)
	require.Equal(t, Instance{}, got.Instance())
}

// mustStartWithPID starts a process with a PID that is free. The kernel gives out
// the one after ns_last_pid next; whoever forks in between makes us try again.
func mustStartWithPID(t *testing.T, pid int) int {
	t.Helper()
	for range 500 {
		// A shell has one thread: nothing of it comes between the write and the fork.
		cmd := exec.Command("sh", "-c", "echo "+strconv.Itoa(pid-1)+" >/proc/sys/kernel/ns_last_pid; cat <&3 >&2 & echo $!; wait")
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd.ExtraFiles = []*os.File{r}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		r.Close()
		b := make([]byte, 16)
		n, err := out.Read(b)
		require.NoError(t, err)
		got, err := strconv.Atoi(string(b[:n-1]))
		require.NoError(t, err)
		end := func() {
			w.Close()
			_ = cmd.Wait() // it was told to end
		}
		if got == pid {
			t.Cleanup(end)
			return got
		}
		end()
	}
	t.Skipf("pid %d was taken by another process of this host", pid)
	return 0
}

func TestRecycledPIDInAPIDNamespace_ByProcfs(t *testing.T) {
	needRoot(t)
	needOwnPIDMax(t)
	c := newChild(t, inNamespaces(syscall.CLONE_NEWPID|syscall.CLONE_NEWNS))
	c.do(t, "proc")
	c.do(t, "recycle")
}

// Seen from outside, two processes that were the same number inside are two.
func TestRecycledPIDInAPIDNamespace_ByHooks(t *testing.T) {
	needRoot(t)
	needOwnPIDMax(t)
	a := newTestAttributor(t, Params{})
	l := newTestListener(t, "127.0.0.1:0")
	require.NoError(t, a.SetPort(portOf(l), RoleOwn))
	c := newChild(t, inNamespaces(syscall.CLONE_NEWPID|syscall.CLONE_NEWNS))
	c.do(t, "proc")
	c.do(t, "small")
	inside := c.do(t, "client %s", l.Addr())
	first := mustPeer(t, a, mustAccept(t, l))
	require.True(t, first.Process().Known, first.Process().Reason)
	require.True(t, first.Alive())
	require.Equal(t, inside, c.do(t, "reclient %s", l.Addr()))
	second := mustKnow(t, a, mustAccept(t, l))
	require.NotEqual(t, first.Process().PID, second.PID)
	require.False(t, first.Alive())
	in, err := SameOrDescendant(second.Instance(), mustInstance(t, c.pid()))
	require.NoError(t, err)
	require.True(t, in)
}

// needOwnPIDMax skips on kernels where pid_max is the whole host's.
func needOwnPIDMax(t *testing.T) {
	t.Helper()
	if !atLeast(kernelRelease(), 6, 14) {
		t.Skip("a pid_max for one namespace needs kernel 6.14")
	}
}

func mustInstance(t testing.TB, pid int) Instance {
	t.Helper()
	id, err := InstanceOf(pid)
	require.NoError(t, err)
	return id
}
