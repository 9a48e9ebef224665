package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a child with its output in a file. It is killed when this program
// dies.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// startProcess runs argv in dir with its output in dir/NAME.log.
func startProcess(name, dir string, env []string, argv ...string) (*process, error) {
	path := filepath.Join(dir, name+".log")
	out, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd: cmd, log: path, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process and waits for it. Nothing here has anything to save.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// await polls until ready says so. It gives up when the process ends, or after
// limit.
func (p *process) await(what string, limit time.Duration, ready func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for !ready() {
		select {
		case <-p.done:
			return fmt.Errorf("ended before %s: %s", what, p.tail())
		case <-late:
			return fmt.Errorf("no %s in %v: %s", what, limit, p.tail())
		case <-tick.C:
		}
	}
	return nil
}

// tail is the end of the log on one line.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	if len(text) > 600 {
		text = text[len(text)-600:]
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// cpu is the user and system time the process has used. It is the sum that
// /proc/PID/stat rounds to ticks.
func (p *process) cpu() (time.Duration, error) {
	var t unix.Timespec
	// The kernel's encoding of another process's CPU clock.
	clock := int32(^p.cmd.Process.Pid<<3 | 2)
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", p.cmd.Process.Pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// memory is a value of /proc/PID/status in bytes: VmRSS or VmHWM.
func (p *process) memory(key string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return statusValue(string(text), key)
}

func statusValue(text, key string) (float64, error) {
	for line := range strings.Lines(text) {
		var kb float64
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			_, err := fmt.Sscanf(rest, "%g kB", &kb)
			return kb * 1024, err
		}
	}
	return 0, errNoValue
}
