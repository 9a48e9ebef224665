package main

import (
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"scopeward/proxy/routertest"
)

// spawner runs the modules' programs as the router's supervisor does.
type spawner struct {
	path   string // the router's connection file
	router *routertest.Router
	ready  sync.WaitGroup // done once router is set

	mu   sync.Mutex
	live map[uint32]*os.Process
}

// Spawn starts l's process.
func (s *spawner) Spawn(l routertest.Launch, m routertest.ModuleConfig) (uint32, error) {
	cmd := exec.Command(m.Program, append(append([]string{}, m.Args...), "--subc", s.path)...)
	cmd.Env = append(os.Environ(), "SUBC_MODULE_ID="+l.ModuleID, "SUBC_LAUNCH_NONCE="+l.Nonce)
	if l.Candidate {
		cmd.Env = append(cmd.Env, "SUBC_SPAWN_ROLE=swap_candidate")
	}
	for name, value := range m.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	l.PID = uint32(cmd.Process.Pid)
	s.mu.Lock()
	s.live[l.PID] = cmd.Process
	s.mu.Unlock()
	go s.reap(cmd, l)
	return l.PID, nil
}

// reap waits for the process and tells the router how it ended.
func (s *spawner) reap(cmd *exec.Cmd, l routertest.Launch) {
	cmd.Wait()
	s.mu.Lock()
	delete(s.live, l.PID)
	s.mu.Unlock()
	s.ready.Wait()
	if s.router == nil {
		return
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		s.router.Crash(l, int(status.Signal()))
		return
	}
	s.router.Exit(l, status.ExitStatus())
}

// Signal asks l's process to end.
func (s *spawner) Signal(l routertest.Launch, sig unix.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.live[l.PID]; p != nil {
		p.Signal(sig)
	}
}

func (s *spawner) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.live {
		p.Kill()
	}
}
