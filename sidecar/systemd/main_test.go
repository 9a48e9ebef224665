package systemd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// envRole makes the test binary a child of the fake manager.
const envRole = "SYSTEMD_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(envRole) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// child says what it was handed over, and stores its file anew.
func child() {
	m := Open()
	defer m.Release()
	fmt.Println("watchdog", m.Watchdog())
	for _, f := range m.Inherited() {
		fmt.Println("inherited", f.Name())
	}
	switch l, err := m.Listener(); {
	case err != nil:
		fmt.Println("error", err)
	case l == nil:
		fmt.Println("no listener")
	default:
		fmt.Println("listener", l.Addr())
		l.Close()
	}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "LISTEN_") || strings.HasPrefix(e, "NOTIFY_") || strings.HasPrefix(e, "WATCHDOG_USEC") {
			fmt.Println("left", e)
		}
	}
	if os.Getenv(envRole) == "nothing" {
		m.Store(nil)
		m.Ready("done")
		return
	}
	var files []*os.File
	for _, name := range []string{"one", "two"} {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		files = append(files, f)
	}
	if err := m.Store(files); err != nil {
		fmt.Println("error", err)
	}
	if err := m.Ready("done"); err != nil {
		fmt.Println("error", err)
	}
}
