package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"scopeward":  main,
		"stubrouter": stubRouter,
		"module":     module,
		"story":      story,
		"sidecar":    main, // scopeward by another name, so that a script can tell them apart
	})
}

// stubRouter is a router at FILE until it is told to end. "wrongkey" publishes
// another key than it holds, "stale" ends at once and leaves its file.
func stubRouter() {
	file, mode := os.Args[1], strings.Join(os.Args[2:], "")
	cfg := routertest.Config{Path: file}
	if mode == "wrongkey" {
		cfg.Path = "" // its true key is nowhere to be found
	}
	r, err := routertest.NewRouter(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	f := r.File()
	switch mode {
	case "wrongkey":
		f.Key = append(connfile.Secret{}, f.Key...)
		f.Key[0]++
	case "stale":
		r.Close()
	}
	if mode != "" {
		if err := connfile.Publish(file, f); err != nil {
			os.Exit(1)
		}
	}
	if mode == "stale" {
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	select {
	case <-end:
	case <-time.After(5 * time.Minute):
	}
	r.Close()
}

// module is a program behind exec: it says where it finds its router.
func module() { fmt.Println(os.Getenv(connfile.EnvFile), os.Args[1:]) }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "conf": conf, "waitfile": waitFile, "busy": busy, "term": terminate,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return os.Chmod(e.WorkDir, 0o755)
		},
	})
}

// exits CODE PROGRAM... runs a program in the foreground: it must end with the
// code, print nothing on its standard output, and one line on the other that
// holds no more than one complaint.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("WORK"), "XDG_RUNTIME_DIR=", "SUBC_CONNECTION_FILE=")
	cmd.Env = append(cmd.Env, "SCOPEWARD_LOG=error")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	ts.Check(cmd.Start())
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Wait()
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), said.String())
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d: %s", got, want, &said)
	}
	if lines := strings.Count(said.String(), "\n"); lines != 1 || !strings.HasPrefix(said.String(), "scopeward: ") {
		ts.Fatalf("want one line of scopeward's, got:\n%s", &said)
	}
}

// conf FILE [MEMBERS] writes a configuration with its usual paths.
func conf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: conf FILE [MEMBERS]")
	}
	members := []string{
		fmt.Sprintf(`"router": {"connection_file": %q}`, ts.MkAbs("run/router.json")),
		`"attribution": {"mode": "off"}`,
	}
	if !strings.Contains(strings.Join(args[1:], ""), `"connection_file"`) {
		members = append(members, fmt.Sprintf(`"connection_file": %q`, ts.MkAbs("side/front.json")))
	}
	text := "{" + strings.Join(append(members, args[1:]...), ", ") + "}"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// waitfile FILE waits until it is there.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not come", args[0])
		}
	}
}

// busy listens on a port of its own for the script's life and names it in BUSY.
func busy(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("BUSY", l.Addr().String())
}

// terminate is "term PROGRAM": it sends SIGTERM to the script's background processes of that name.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: term PROGRAM")
	}
	for _, cmd := range ts.BackgroundCmds() {
		if filepath.Base(cmd.Path) == args[0] && cmd.ProcessState == nil {
			ts.Check(cmd.Process.Signal(syscall.SIGTERM))
		}
	}
}
