package systemdtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// TB is what a manager needs of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// patience bounds every wait.
const patience = time.Minute

// Message is one notification: its assignments by name.
type Message map[string]string

// Manager is a service manager. It keeps what it is given to store.
type Manager struct {
	t        TB
	conn     *net.UnixConn
	messages chan Message

	mu    sync.Mutex
	store []*os.File // by FDNAME, in the order of their coming
	lent  []*os.File // duplicates for children
}

// New starts a manager. It ends with the test.
func New(t TB) *Manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatalf("fake manager: %v", err)
	}
	m := &Manager{t: t, conn: conn, messages: make(chan Message, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.read()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
		for _, f := range append(m.store, m.lent...) {
			f.Close()
		}
	})
	return m
}

// Path is the notify socket.
func (m *Manager) Path() string { return m.conn.LocalAddr().String() }

func (m *Manager) read() {
	buf, oob := make([]byte, 8192), make([]byte, 1024)
	for {
		n, oobn, _, _, err := m.conn.ReadMsgUnix(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		msg := Message{}
		for _, line := range strings.Split(string(buf[:n]), "\n") {
			name, value, _ := strings.Cut(line, "=")
			msg[name] = value
		}
		m.keep(msg, fds(oob[:oobn]))
		m.messages <- msg
	}
}

func fds(oob []byte) []int {
	var all []int
	controls, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, c := range controls {
		if got, err := unix.ParseUnixRights(&c); err == nil {
			all = append(all, got...)
		}
	}
	return all
}

// keep does with a message what systemd's store does.
func (m *Manager) keep(msg Message, fds []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := msg["FDNAME"]
	if msg["FDSTOREREMOVE"] == "1" {
		m.store = slices.DeleteFunc(m.store, func(f *os.File) bool {
			if f.Name() != name {
				return false
			}
			f.Close()
			return true
		})
	}
	for _, fd := range fds {
		if msg["FDSTORE"] != "1" || msg["FDPOLL"] != "0" && polledOut(fd) {
			unix.Close(fd)
			continue
		}
		unix.CloseOnExec(fd)
		m.store = append(m.store, os.NewFile(uintptr(fd), name))
	}
}

// polledOut reports whether the store would drop fd on its first look.
func polledOut(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0 && p[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// Stored are the descriptors that are kept now. They stay the manager's.
func (m *Manager) Stored() []*os.File {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.store)
}

// lend duplicates what is stored: a child may have it thrown out while it starts.
func (m *Manager) lend() []*os.File {
	m.mu.Lock()
	defer m.mu.Unlock()
	var files []*os.File
	for _, f := range m.store {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			m.t.Fatalf("fake manager: %v", err)
		}
		files = append(files, os.NewFile(uintptr(fd), f.Name()))
	}
	m.lent = append(m.lent, files...)
	return files
}

// Next waits for the next message.
func (m *Manager) Next() Message {
	m.t.Helper()
	select {
	case msg := <-m.messages:
		return msg
	case <-time.After(patience):
		m.t.Fatalf("no notification came")
		return nil
	}
}

// Await waits for a message in which name is value, and returns it.
func (m *Manager) Await(name, value string) Message {
	m.t.Helper()
	for {
		if msg := m.Next(); msg[name] == value {
			return msg
		}
	}
}

// Command is a child as systemd would start it: notify socket, watchdog, the
// sockets, and what is stored. It is not started.
func (m *Manager) Command(ctx context.Context, watchdog time.Duration, sockets []*os.File, program string, args ...string) *exec.Cmd {
	files := append(slices.Clone(sockets), m.lend()...)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.ReplaceAll(f.Name(), ":", "_")
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"`, program}, args...)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+m.Path(),
		fmt.Sprintf("LISTEN_FDS=%d", len(files)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	if watchdog > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds()))
	}
	cmd.ExtraFiles = files
	return cmd
}

// Messages are the notifications, for who waits without an end.
func (m *Manager) Messages() <-chan Message { return m.messages }
