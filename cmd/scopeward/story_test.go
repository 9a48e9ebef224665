package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
)

// TestReading plays the commands that read a running sidecar, and those that act
// on it.
func TestReading(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/reading",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "conf": conf, "waitfile": waitFile, "term": terminate, "secretless": secretless, "retry": retry, "hangup": hangup,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return os.Chmod(e.WorkDir, 0o755)
		},
	})
}

// storyProof is the secret of the story's scope. No output may hold it, its hash
// or the nonce of a launch.
const storyProof = "an operator must never read this"

// story is a router at ROUTER, and what happens behind and before a sidecar that
// publishes at FRONT: an owner syncs, a route opens, another is refused, a record
// is refused; with "expiry" behind them, a deadline passes too. Then it writes its secrets to SECRETS, one a line, and stays until
// it is told to end.
func story() {
	router, front, secrets := os.Args[1], os.Args[2], os.Args[3]
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	tb := &storyTB{}
	r, err := routertest.NewRouter(routertest.Config{Path: router, Modules: []routertest.ModuleConfig{{ID: "core"}, {ID: "tool"}, {ID: "idle"}}})
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(r.Close)
	tb.await(front)

	launch := r.Launch("core")
	owner := routertest.DialModule(tb, front)
	owner.Hello("core", routertest.Nonce(launch))
	tool := routertest.DialModule(tb, front)
	tool.Hello("tool", routertest.Nonce(r.Launch("tool")), routertest.Declares("call-modes/v1"))
	tool.Serve()

	hash := sha256.Sum256([]byte(storyProof))
	direct := routertest.Doc{"principal": routertest.Direct()}
	owner.Sync(1,
		routertest.Doc{"ref": "session-1", "scope_epoch": 7, "kind": "head", "attributes": routertest.Doc{"agent_id": "alice"},
			"carriers": []any{direct}},
		routertest.Doc{"ref": "proven", "scope_epoch": 1, "kind": "worker", "bind_proof_sha256": hex.EncodeToString(hash[:]), "carriers": []any{direct}},
		routertest.Doc{"ref": "bad\nref \x1b[31m", "scope_epoch": 1, "kind": "worker", "attributes": routertest.Doc{"delegates": true}},
	).OK()

	client := routertest.Dial(tb, front)
	client.Open("tool", routertest.Scope(routertest.Selector("core", "session-1", 7)))
	client.OpenRefused("scope_ended", "tool", routertest.Scope(routertest.Selector("core", "session-1", 6)))
	proven := routertest.Selector("core", "proven", 1)
	proven["bind_proof"] = base64.RawURLEncoding.EncodeToString([]byte(storyProof))
	client.Open("tool", routertest.Scope(proven))

	if len(os.Args) > 4 && os.Args[4] == "expiry" {
		owner.Apply(2, []any{routertest.Doc{"ref": "short", "scope_epoch": 3, "kind": "ephemeral", "carriers": []any{direct},
			"expires_at_ms": time.Now().Add(3 * time.Second).UnixMilli()}}, nil).OK()
		client.Open("tool", routertest.Scope(routertest.Selector("core", "short", 3))).Drained("scope_ended")
	}
	told := strings.Join([]string{
		storyProof, proven["bind_proof"].(string), hex.EncodeToString(hash[:]), launch.Nonce,
		hex.EncodeToString(r.File().Key), "scopeward.open/",
	}, "\n")
	if err := os.WriteFile(secrets+".new", []byte(told+"\n"), 0o600); err != nil {
		tb.Fatalf("%v", err)
	}
	if err := os.Rename(secrets+".new", secrets); err != nil {
		tb.Fatalf("%v", err)
	}
	select {
	case <-end:
	case <-time.After(5 * time.Minute):
	}
	tb.finish()
}

// storyTB is the story's own testing.TB.
type storyTB struct{ cleanups []func() }

func (t *storyTB) Helper() {}

func (t *storyTB) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "story: "+format+"\n", args...)
	os.Exit(1)
}

func (t *storyTB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *storyTB) finish() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

// await waits until the connection file at path is there.
func (t *storyTB) await(path string) {
	w, err := connfile.Watch(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer w.Close()
	deadline := time.After(time.Minute)
	for {
		if _, err := connfile.Read(path); err == nil {
			return
		}
		select {
		case <-w.Changes():
		case <-deadline:
			t.Fatalf("%s does not come", path)
		}
	}
}

// retry PATTERN PROGRAM... runs a program until it prints what matches.
func retry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: retry PATTERN PROGRAM...")
	}
	pattern := regexp.MustCompile(args[0])
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		_ = ts.Exec(args[1], args[2:]...) // a no is an answer
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not come: %s", args[0], ts.ReadFile("stdout"))
		}
	}
}

// secretless FILE SECRETS... fails when FILE holds a line of any SECRETS.
func secretless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: secretless SECRETS FILE...")
	}
	secrets := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	if len(secrets) < 6 {
		ts.Fatalf("%s holds %d secrets only", args[0], len(secrets))
	}
	for _, file := range args[1:] {
		text := ts.ReadFile(file)
		if len(text) == 0 {
			ts.Fatalf("%s is empty", file)
		}
		for i, secret := range secrets {
			if strings.Contains(text, secret) {
				ts.Fatalf("%s holds secret %d", file, i)
			}
		}
	}
}
