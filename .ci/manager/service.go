package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scopeward/sidecar/systemd/systemdtest"
)

// service is a started service.
type service struct {
	unit   *unit
	cmd    *exec.Cmd
	ended  chan struct{}
	quiet  chan struct{}        // closed when nobody waits for what it says
	notify *systemdtest.Manager // nil for a service that says nothing

	mu     sync.Mutex
	said   map[string]int // messages by their assignment
	status string
	pinged time.Time
}

var capabilities = map[string]uintptr{"CAP_BPF": unix.CAP_BPF, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN}

// begin runs the unit's ExecStart line as its user, in its folders, with its
// sockets and what its notify manager stored.
func begin(u *unit, sockets []*os.File, notify *systemdtest.Manager, log string) (*service, error) {
	who, err := user.Lookup(u.last("Service.User"))
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	for key, parent := range map[string]string{"RuntimeDirectory": "/run", "StateDirectory": "/var/lib"} {
		for _, name := range u.words("Service." + key) {
			dir := filepath.Join(parent, name)
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, uid, gid)); err != nil {
				return nil, err
			}
		}
	}
	line := strings.Fields(u.last("Service.ExecStart"))
	s := &service{unit: u, ended: make(chan struct{}), quiet: make(chan struct{}), said: map[string]int{}, pinged: time.Now()}
	if u.last("Service.Type") == "notify" {
		s.notify = notify
		s.cmd = notify.Command(context.Background(), u.seconds("Service.WatchdogSec", 0), sockets, line[0], line[1:]...)
	} else {
		s.cmd = exec.Command(line[0], line[1:]...)
	}
	passed := s.cmd.Env
	s.cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + who.HomeDir, "USER=" + who.Username}, u.keys["Service.Environment"]...)
	for _, e := range passed {
		if strings.HasPrefix(e, "NOTIFY_SOCKET=") || strings.HasPrefix(e, "LISTEN_FD") || strings.HasPrefix(e, "WATCHDOG_USEC=") {
			s.cmd.Env = append(s.cmd.Env, e)
		}
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, Setpgid: true}
	for _, name := range u.words("Service.AmbientCapabilities") {
		s.cmd.SysProcAttr.AmbientCaps = append(s.cmd.SysProcAttr.AmbientCaps, capabilities[name])
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = "/", out, out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.ended)
	}()
	if s.notify != nil {
		go s.listen()
		return s, s.await("READY=1", 1, u.seconds("Service.TimeoutStartSec", 90*time.Second))
	}
	return s, nil
}

// listen counts what the service says until nobody waits for more.
func (s *service) listen() {
	for {
		select {
		case msg := <-s.notify.Messages():
			s.mu.Lock()
			for name, value := range msg {
				if name == "STATUS" {
					s.status = value
				}
				s.said[name+"="+value]++
			}
			if msg["WATCHDOG"] == "1" {
				s.pinged = time.Now()
			}
			if _, at := msg["MONOTONIC_USEC"]; msg["RELOADING"] == "1" && at {
				s.said["RELOADING with its time"]++
			}
			s.mu.Unlock()
		case <-s.quiet:
			return
		}
	}
}

func (s *service) heard(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[what]
}

// await waits until the service has said what n times.
func (s *service) await(what string, n int, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for s.heard(what) < n {
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended: %v", s.unit.name, s.cmd.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not say %q in %v", s.unit.name, what, limit)
		}
	}
	return nil
}

// stop ends the service with SIGTERM.
func (s *service) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(s.unit.seconds("Service.TimeoutStopSec", 20*time.Second)):
		s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("%s had to be killed", s.unit.name)
	}
	defer close(s.quiet)
	for late := time.Now().Add(2 * time.Second); s.notify != nil && s.heard("STOPPING=1") == 0 && time.Now().Before(late); {
		time.Sleep(10 * time.Millisecond)
	}
	if s.notify != nil && (s.cmd.ProcessState.ExitCode() != 0 || s.heard("STOPPING=1") != 1) {
		return fmt.Errorf("%s ended badly: %v, it said %v", s.unit.name, s.cmd.ProcessState, s.said)
	}
	return nil
}

// reload runs the unit's ExecReload line and waits for the end of the reload.
func (s *service) reload() error {
	ready := s.heard("READY=1")
	line := strings.Fields(strings.ReplaceAll(s.unit.last("Service.ExecReload"), "$MAINPID", strconv.Itoa(s.cmd.Process.Pid)))
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", line, err, out)
	}
	if err := s.await("RELOADING with its time", 1, 10*time.Second); err != nil {
		return err
	}
	return s.await("READY=1", ready+1, 10*time.Second)
}

// listenFor opens a socket unit's socket as systemd would.
func listenFor(u *unit) (*os.File, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", u.last("Socket.ListenStream"))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3) // a file owns its descriptor
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), u.name), nil
}
