package systemd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// sendFor bounds one message: a manager whose queue is full is busy with
// something else.
const sendFor = time.Second

// maxStatus is the longest status line in bytes.
const maxStatus = 256

// Manager is the service manager. Its zero value is none. Methods may be called
// from any goroutine.
type Manager struct {
	socket   string        // a path, or @ and an abstract name; "": nobody listens
	watchdog time.Duration // 0: nobody waits for pings
	files    []*os.File    // what it handed over, without listening sockets
	sockets  []*os.File
}

// Open reads what the manager left in the environment and takes it out of
// there. What is malformed is as if it were not there, as sd_notify(3) has it.
func Open() *Manager {
	m := &Manager{}
	// An error says that another process is meant.
	m.watchdog, _ = daemon.SdWatchdogEnabled(true)
	if path := os.Getenv("NOTIFY_SOCKET"); strings.HasPrefix(path, "/") || strings.HasPrefix(path, "@") {
		m.socket = path
	}
	os.Unsetenv("NOTIFY_SOCKET")
	for _, f := range activation.Files(true) {
		if isListening(f) {
			m.sockets = append(m.sockets, f)
		} else {
			m.files = append(m.files, f)
		}
	}
	return m
}

// Notified reports whether somebody listens to what we say.
func (m *Manager) Notified() bool { return m.socket != "" }

// Watchdog is how long the manager waits for a ping before it ends us, 0 when it
// does not.
func (m *Manager) Watchdog() time.Duration { return m.watchdog }

// Ready says that we are started, or that a reload is over.
func (m *Manager) Ready(status string) error {
	return m.send(nil, daemon.SdNotifyReady, statusLine(status))
}

// Pulse says how we are, and with alive that the watchdog may go on waiting.
func (m *Manager) Pulse(alive bool, status string) error {
	if alive {
		return m.send(nil, daemon.SdNotifyWatchdog, statusLine(status))
	}
	return m.send(nil, statusLine(status))
}

// Reloading says that a reload has begun. [Manager.Ready] ends it.
func (m *Manager) Reloading() error {
	return m.send(nil, daemon.SdNotifyReloading, strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

// Stopping says that we are on our way out, and asks for as long as it may take.
func (m *Manager) Stopping(within time.Duration) error {
	return m.send(nil, daemon.SdNotifyStopping, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()))
}

// statusLine is one line: a name in it can't become another assignment.
func statusLine(status string) string {
	if len(status) > maxStatus {
		status = status[:maxStatus]
	}
	return "STATUS=" + strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, status)
}

// send sends one message, with f's descriptor when there is one.
func (m *Manager) send(f *os.File, lines ...string) error {
	if m.socket == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("service manager: %w", os.NewSyscallError("socket", err))
	}
	defer unix.Close(fd)
	patience := unix.NsecToTimeval(sendFor.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience); err != nil {
		return fmt.Errorf("service manager: %w", os.NewSyscallError("setsockopt", err))
	}
	var rights []byte
	if f != nil {
		rights = unix.UnixRights(int(f.Fd()))
	}
	to := &unix.SockaddrUnix{Name: m.socket}
	if err := unix.Sendmsg(fd, []byte(strings.Join(lines, "\n")), rights, to, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("service manager: %w", os.NewSyscallError("sendmsg", err))
	}
	return nil
}
