// Command manager stands in for systemd where it is not PID 1: it reads the
// units that are installed, runs their lines as their users, hands sockets over,
// keeps the descriptor store and listens to notifications. It does what the
// README's commands ask of systemctl and nothing else.
//
//	manager serve FOLDER          be the manager; FOLDER is for its socket and logs
//	manager ctl FOLDER ARGS...    be systemctl
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scopeward/sidecar/systemd/systemdtest"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: manager serve FOLDER | manager ctl FOLDER ARGS...")
	}
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2])
	case "ctl":
		err = ask(os.Args[2], os.Args[3:])
	default:
		err = errors.New("no such command")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func ask(dir string, args []string) error {
	c, err := net.Dial("unix", filepath.Join(dir, "control"))
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintln(c, strings.Join(args, "\t"))
	answer, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if text, failed := strings.CutPrefix(string(answer), "failed: "); failed {
		return errors.New(text)
	}
	fmt.Print(string(answer))
	return nil
}

// folder is what a fake manager asks of a test.
type folder struct{ dir string }

func (folder) Helper()                           {}
func (folder) Cleanup(func())                    {}
func (folder) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }
func (f folder) TempDir() string                 { return f.dir }

// manager is the units that run.
type manager struct {
	dir      string
	services map[string]*service
	sockets  map[string]*os.File
	notify   *systemdtest.Manager
}

func serve(dir string) error {
	l, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		return err
	}
	m := &manager{dir: dir, services: map[string]*service{}, sockets: map[string]*os.File{}, notify: systemdtest.New(folder{dir})}
	if err := os.Chmod(m.notify.Path(), 0o777); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err == nil {
			answer, err := m.do(strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
			if err != nil {
				answer = "failed: " + err.Error()
			}
			io.WriteString(c, answer)
		}
		c.Close()
		if strings.HasPrefix(line, "exit") {
			return nil
		}
	}
}

func (m *manager) do(args []string) (string, error) {
	units := args[1:]
	now := len(units) > 0 && units[0] == "--now"
	if now {
		units = units[1:]
	}
	each := func(f func(string) error) (string, error) {
		var errs []error
		for _, name := range units {
			errs = append(errs, f(name))
		}
		return "", errors.Join(errs...)
	}
	switch verb := args[0]; {
	case verb == "daemon-reload", (verb == "enable" || verb == "disable") && !now:
		return "", nil
	case verb == "start", verb == "enable":
		return each(m.start)
	case verb == "stop", verb == "disable":
		return each(m.stop)
	case verb == "restart":
		return each(func(name string) error { return errors.Join(m.stop(name), m.start(name)) })
	case verb == "reload":
		return each(func(name string) error {
			name = fullName(name)
			if m.services[name] == nil {
				return fmt.Errorf("%s does not run", name)
			}
			return m.services[name].reload()
		})
	case verb == "show" && len(units) == 1:
		return m.show(fullName(units[0]))
	case verb == "exit":
		for name := range m.services {
			m.stop(name)
		}
		return "", nil
	}
	return "", fmt.Errorf("systemctl %v is not done here", args)
}

// fullName is a unit's whole name.
func fullName(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	return name + ".service"
}

func (m *manager) start(name string) error {
	name = fullName(name)
	if m.services[name] != nil || m.sockets[name] != nil {
		return nil
	}
	u, err := loadUnit(name)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, ".socket") {
		m.sockets[name], err = listenFor(u)
		return err
	}
	var sockets []*os.File
	for _, need := range u.words("Unit.Requires") {
		if err := m.start(need); err != nil {
			return err
		}
		if f := m.sockets[need]; f != nil {
			sockets = append(sockets, f)
		}
	}
	s, err := begin(u, sockets, m.notify, filepath.Join(m.dir, name+".log"))
	if err != nil {
		return err
	}
	m.services[name] = s
	for _, want := range u.words("Unit.Wants") {
		if err := m.start(want); err != nil {
			return err
		}
	}
	return nil
}

func (m *manager) stop(name string) error {
	name = fullName(name)
	if f := m.sockets[name]; f != nil {
		delete(m.sockets, name)
		return f.Close()
	}
	s := m.services[name]
	if s == nil {
		return nil
	}
	for _, other := range s.unit.words("Unit.PropagatesStopTo") {
		if err := m.stop(other); err != nil {
			return err
		}
	}
	delete(m.services, name)
	return s.stop()
}

// show is what there is to know of a service, a line each.
func (m *manager) show(name string) (string, error) {
	s := m.services[name]
	if s == nil {
		return "", fmt.Errorf("%s does not run", name)
	}
	select {
	case <-s.ended:
		return "", fmt.Errorf("%s ended: %v", name, s.cmd.ProcessState)
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("MainPID=%d\nStatusText=%s\nPings=%d\nSincePing=%d\nNFileDescriptorStore=%d\n", s.cmd.Process.Pid, s.status,
		s.said["WATCHDOG=1"], int(time.Since(s.pinged).Seconds()), len(m.notify.Stored())), nil
}
