package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is one program that a test started. Its output goes to a log file of
// the world.
type process struct {
	t    *testing.T
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
}

// startProcess starts program with exactly env as its environment.
func startProcess(t *testing.T, name, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, out, out
	require.NoError(t, p.cmd.Start())
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop sends sig and waits. A process that does not end in patience is killed,
// and stop reports false.
func (p *process) stop(sig syscall.Signal, patience time.Duration) bool {
	if p == nil {
		return true
	}
	p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return true
	case <-time.After(patience):
	}
	p.cmd.Process.Kill()
	<-p.done
	return false
}

// output is everything the process and its predecessors of the same name wrote.
func (p *process) output() []byte {
	b, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	return b
}

// killMarked kills every process whose environment holds mark: the modules that
// a killed router left behind.
func killMarked(mark string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && bytes.Contains(env, []byte(mark)) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
