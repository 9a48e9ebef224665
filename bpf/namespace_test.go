package bpf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// enterNetns puts this thread into a network namespace of its own with a
// loopback device.
func enterNetns() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// stuffedListener listens with a queue of one, and fills it: further SYNs are
// dropped, and their senders go on trying.
func stuffedListener(addr string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	sa, err := sockaddr(addr, false)
	if err != nil {
		return fd, err
	}
	if err := unix.Bind(fd, sa); err != nil {
		return fd, err
	}
	if err := unix.Listen(fd, 0); err != nil {
		return fd, err
	}
	_, err = connectAs("v4", addr, "")
	return fd, err
}

// shrinkQueue makes l's queue one long.
func shrinkQueue(l *net.TCPListener) error {
	sc, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = sc.Control(func(fd uintptr) { inner = unix.Listen(int(fd), 0) })
	return errors.Join(err, inner)
}

// startClient is the command "client ADDR": a child of ours connects and stays.
func startClient(s *childState, args []string) (string, error) {
	connect, err := spawnClient(s)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(s.client.Process.Pid), connect(args[0])
}

// spawnClient makes the child; the function it returns makes it connect.
func spawnClient(s *childState) (connect func(addr string) error, err error) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.client = cmd
	return func(addr string) error {
		fmt.Fprintln(in, "connect v4 "+addr)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "ok") {
			return fmt.Errorf("client: %q, %v", line, err)
		}
		return nil
	}, nil
}

func stopClient(s *childState) {
	if s.client != nil {
		_ = s.client.Process.Kill() // it may have ended
		_ = s.client.Wait()         // killed
		s.client = nil
	}
}

// recycleClient is the command "reclient ADDR": the client ends, processes come
// and go until PIDs have gone round, and then one has its PID and connects. For a
// PID namespace of our own with a small pid_max.
func recycleClient(s *childState, args []string) (string, error) {
	want := s.client.Process.Pid
	stopClient(s)
	round := false
	for last := want; !round; {
		cmd := exec.Command("true")
		if err := cmd.Run(); err != nil {
			return "", err
		}
		round = cmd.Process.Pid < last
		last = cmd.Process.Pid
	}
	for range 200 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(want-1)), 0); err != nil {
			return "", err
		}
		connect, err := spawnClient(s)
		if err != nil {
			return "", err
		}
		if s.client.Process.Pid == want {
			return strconv.Itoa(want), connect(args[0])
		}
		stopClient(s) // a thread got in between
	}
	return "", fmt.Errorf("pid %d never came again", want)
}

// smallPIDs makes PIDs of this namespace run in a small circle.
func smallPIDs() error {
	if err := os.WriteFile("/proc/sys/kernel/pid_max", []byte("400"), 0); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte("310"), 0)
}

// recycleByProcfs is the command "recycle", for the first process of a PID
// namespace with a /proc of its own: what do we say there of a recycled PID?
func recycleByProcfs(s *childState, _ []string) (string, error) {
	defer stopClient(s)
	if _, err := Open(Params{}); !errors.Is(err, ErrNotSupported) {
		return "", fmt.Errorf("the hooks opened in a PID namespace: %v", err)
	}
	if err := smallPIDs(); err != nil {
		return "", err
	}
	a, err := OpenProcfs(Params{}, nil)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l, err := ListenTCP(ctx, "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	next := func(run func(*childState, []string) (string, error)) (*Peer, error) {
		if _, err := run(s, []string{l.Addr().String()}); err != nil {
			return nil, err
		}
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		p := a.Peer(SocketOf(c))
		if got := p.Process(); !got.Known || got.PID != s.client.Process.Pid {
			return nil, fmt.Errorf("client %d is said to be %+v", s.client.Process.Pid, got)
		}
		return p, nil
	}
	first, err := next(startClient)
	if err != nil {
		return "", err
	}
	if !first.Alive() {
		return "", errors.New("the first client is said to be dead")
	}
	second, err := next(recycleClient)
	if err != nil {
		return "", err
	}
	f, g := first.Process(), second.Process()
	switch {
	case f.PID != g.PID:
		return "", fmt.Errorf("the PID was not recycled: %d, %d", f.PID, g.PID)
	case first.Alive(), f.Instance().Alive():
		return "", errors.New("the first client is alive in the second")
	case f.Instance() == g.Instance():
		return "", errors.New("two processes are one instance")
	case !second.Alive(), !g.Instance().Alive():
		return "", errors.New("the second client is said to be dead")
	}
	return "", nil
}

// openAndProbe is what the command "open" answers.
func openAndProbe(p Params) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := Open(p)
	var ns *NotSupportedError
	if errors.As(err, &ns) {
		return "unsupported: " + ns.Reason + "; " + ns.Remedy, nil
	}
	if err != nil {
		return "", err
	}
	defer a.Close()
	if err := a.SelfProbe(ctx); err != nil {
		return "", err
	}
	return a.Status().Why, nil
}
