package main

import (
	"path/filepath"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// hangup is "hangup PROGRAM": it sends SIGHUP to the script's background processes
// of that name.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hangup PROGRAM")
	}
	for _, cmd := range ts.BackgroundCmds() {
		if filepath.Base(cmd.Path) == args[0] && cmd.ProcessState == nil {
			ts.Check(cmd.Process.Signal(syscall.SIGHUP))
		}
	}
}
