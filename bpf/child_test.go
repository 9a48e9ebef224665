package bpf

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// childEnv makes the test binary a child: it reads commands from its standard
// input, a line each, and answers each with a line: "ok ...", or what is wrong.
// It ends with its input, and by itself after three minutes.
const childEnv = "SCOPEWARD_BPF_CHILD"

// child is a process of the test binary that does as it is told.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	pass *net.UnixConn // descriptors go through here
}

type childOption func(*exec.Cmd)

func asNobody(caps ...uintptr) childOption {
	return func(c *exec.Cmd) {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		c.SysProcAttr.AmbientCaps = caps
	}
}

func inNamespaces(flags uintptr) childOption {
	return func(c *exec.Cmd) { c.SysProcAttr.Cloneflags = flags }
}

func newChild(t testing.TB, options ...childOption) *child {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "pass"), os.NewFile(uintptr(pair[1]), "pass")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	require.NoError(t, err)

	// The link leads to the binary even for a user who can't walk its path.
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"=1", "GORACE=atexit_sleep_ms=0") // the detector lingers for a second otherwise
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, o := range options {
		o(cmd)
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd: cmd, in: in, out: bufio.NewScanner(out), pass: conn.(*net.UnixConn)}
	t.Cleanup(func() {
		c.end()
		c.pass.Close()
	})
	return c
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// end closes the child's input and waits for it.
func (c *child) end() {
	c.in.Close()
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Wait() // how it ended is no news
	}
}

// start gives a command and doesn't wait for its answer.
func (c *child) start(t testing.TB, format string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintf(c.in, format+"\n", args...)
	require.NoError(t, err)
}

// answer waits for the answer to a command.
func (c *child) answer(t testing.TB) string {
	t.Helper()
	require.True(t, c.out.Scan(), "the child ended")
	rest, ok := strings.CutPrefix(c.out.Text(), "ok")
	require.True(t, ok, "child: %s", c.out.Text())
	return strings.TrimSpace(rest)
}

// do gives a command and returns its answer.
func (c *child) do(t testing.TB, format string, args ...any) string {
	t.Helper()
	c.start(t, format, args...)
	return c.answer(t)
}

// handTo passes the child's newest socket to another child.
func (c *child) handTo(t testing.TB, to *child) {
	t.Helper()
	c.do(t, "send")
	fd, err := receiveFD(c.pass)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, passFD(to.pass, fd))
	to.do(t, "receive")
}

func passFD(to *net.UnixConn, fd int) error {
	_, _, err := to.WriteMsgUnix([]byte{0}, unix.UnixRights(fd), nil)
	return err
}

func receiveFD(from *net.UnixConn) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := from.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return -1, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		return -1, fmt.Errorf("no descriptor came: %v", err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("no descriptor came: %v", err)
	}
	return fds[0], nil
}

// childState is what a child holds between commands.
type childState struct {
	pass   *net.UnixConn
	socks  []int
	client *exec.Cmd
}

func (s *childState) last() int { return s.socks[len(s.socks)-1] }

// childMain serves commands on one thread, so that a namespace that it enters is
// the namespace of what it does next.
func childMain() {
	runtime.LockOSThread()
	time.AfterFunc(3*time.Minute, func() { os.Exit(3) })
	s := &childState{}
	if c, err := net.FileConn(os.NewFile(3, "pass")); err == nil {
		s.pass = c.(*net.UnixConn)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		args := strings.Fields(in.Text())
		run, ok := childCommands[args[0]]
		if !ok {
			fmt.Println("no such command:", args[0])
			continue
		}
		answer, err := run(s, args[1:])
		if err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println("ok", answer)
	}
	os.Exit(0)
}

var childCommands = map[string]func(s *childState, args []string) (string, error){
	// connect KIND ADDR [SOURCE]: one connection, kept.
	"connect": func(s *childState, args []string) (string, error) {
		source := ""
		if len(args) == 3 {
			source = args[2]
		}
		fd, err := connectAs(args[0], args[1], source)
		if err != nil {
			return "", err
		}
		s.socks = append(s.socks, fd)
		return "", nil
	},
	// many N ADDR4 ADDR6: N connections of every kind in turn, each says our PID.
	"many": func(s *childState, args []string) (string, error) {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return "", err
		}
		for i := range n {
			k := connectKinds[i%len(connectKinds)]
			addr := args[1]
			if k.six {
				addr = args[2]
			}
			fd, err := connectAs(k.name, addr, "")
			if err != nil {
				return "", fmt.Errorf("%s: %w", k.name, err)
			}
			if err := waitConnected(fd); err != nil {
				return "", fmt.Errorf("%s: %w", k.name, err)
			}
			if _, err := unix.Write(fd, fmt.Appendf(nil, "%8d", os.Getpid())); err != nil {
				return "", fmt.Errorf("%s: %w", k.name, err)
			}
			s.socks = append(s.socks, fd)
		}
		return "", nil
	},
	// say TEXT: write on the newest socket.
	"say": func(s *childState, args []string) (string, error) {
		_, err := unix.Write(s.last(), []byte(args[0]))
		return "", err
	},
	// again ADDR: dissolve the newest socket's connection and connect it anew.
	"again": func(s *childState, args []string) (string, error) {
		var unspec [16]byte // family AF_UNSPEC
		if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(s.last()), uintptr(unsafe.Pointer(&unspec)), 16); e != 0 {
			return "", e
		}
		sa, err := sockaddr(args[0], false)
		if err != nil {
			return "", err
		}
		return "", unix.Connect(s.last(), sa)
	},
	"close": func(s *childState, _ []string) (string, error) {
		for _, fd := range s.socks {
			unix.Close(fd)
		}
		s.socks = nil
		return "", nil
	},
	"send": func(s *childState, _ []string) (string, error) {
		return "", passFD(s.pass, s.last())
	},
	"receive": func(s *childState, _ []string) (string, error) {
		fd, err := receiveFD(s.pass)
		s.socks = append(s.socks, fd)
		return "", err
	},
	// exec PATH: become another program, sockets and standard input kept.
	"exec": func(s *childState, args []string) (string, error) {
		for _, fd := range s.socks {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
				return "", err
			}
		}
		fmt.Println("ok")
		return "", unix.Exec(args[0], []string{args[0]}, nil)
	},
	// fork: a child of ours that holds the newest socket and waits for its input.
	"fork": func(s *childState, _ []string) (string, error) {
		cmd := exec.Command("cat")
		cmd.Stdin = os.Stdin
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(s.last()), "socket")}
		err := cmd.Start()
		if err != nil {
			return "", err
		}
		return strconv.Itoa(cmd.Process.Pid), nil
	},
	"netns": func(_ *childState, _ []string) (string, error) { return "", enterNetns() },
	// stuff ADDR: a listener here whose queue is full, so that SYNs are dropped.
	"stuff": func(s *childState, args []string) (string, error) {
		fd, err := stuffedListener(args[0])
		s.socks = append(s.socks, fd)
		return "", err
	},
	"open": func(_ *childState, args []string) (string, error) {
		var p Params
		if len(args) > 0 {
			p.CgroupPath = args[0]
		}
		return openAndProbe(p)
	},
	"umount": func(_ *childState, args []string) (string, error) {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return "", err
		}
		return "", unix.Unmount(args[0], unix.MNT_DETACH)
	},
	"proc": func(_ *childState, _ []string) (string, error) {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return "", err
		}
		return "", unix.Mount("proc", "/proc", "proc", 0, "")
	},
	// open-as-nobody: the same in a child of ours without privileges.
	"open-as-nobody": func(_ *childState, _ []string) (string, error) {
		cmd := exec.Command("/proc/self/exe", "-test.run=^$")
		cmd.Stdin = strings.NewReader("open\n")
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
			AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_NET_ADMIN},
		}
		out, err := cmd.Output()
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "ok "), err
	},
	"openany": func(_ *childState, _ []string) (string, error) {
		a, err := OpenAny(Params{})
		if err != nil {
			return "", err
		}
		defer a.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.SelfProbe(ctx); err != nil {
			return "", err
		}
		st := a.Status()
		return st.Source.String() + ": " + st.Why, nil
	},
	"small": func(_ *childState, _ []string) (string, error) { return "", smallPIDs() },
	// peer: who connected the accepted connection that comes next, as /proc says.
	"peer": func(s *childState, _ []string) (string, error) {
		fd, err := receiveFD(s.pass)
		if err != nil {
			return "", err
		}
		f := os.NewFile(uintptr(fd), "accepted")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			return "", err
		}
		defer c.Close()
		a, err := OpenProcfs(Params{}, nil)
		if err != nil {
			return "", err
		}
		return a.Process(SocketOf(c.(*net.TCPConn))).Reason, nil
	},
	"client":   startClient,
	"reclient": recycleClient,
	"recycle":  recycleByProcfs,
}
