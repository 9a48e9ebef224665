package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
)

// wrongKeyAfter is how long a file may name a living process that does not hold
// its key. A starting router listens before it has written its new file.
const wrongKeyAfter = 3 * time.Second

// stubborn is a file whose daemon does not hold its key, and since when.
type stubborn struct {
	file  connfile.File
	since time.Time
}

// hopeless tells what is wrong from what is not there yet.
func (k *keeper) hopeless(file connfile.File, err error, wrong *stubborn) error {
	switch {
	case errors.Is(err, connfile.ErrInsecure), errors.Is(err, fs.ErrPermission):
		return err
	case !misproven(err) || !alive(file.PID):
		wrong.since = time.Time{}
		return nil
	case wrong.since.IsZero() || !wrong.file.SameDaemon(file):
		wrong.file, wrong.since = file, time.Now()
		return nil
	case time.Since(wrong.since) < wrongKeyAfter:
		return nil
	}
	return &StartError{
		Subject: fmt.Sprintf("\"router.connection_file\" %q", k.path),
		What:    fmt.Sprintf("what listens on %s does not hold this file's key", file.Endpoints[0].Address()),
		Remedy:  "name the file that the running router has written, or restart the router",
		Err:     err,
	}
}

func misproven(err error) bool {
	return errors.Is(err, handshake.ErrServerProof) || errors.Is(err, handshake.ErrDaemonID)
}

// alive reports whether a process with this PID is there, ours or not.
func alive(pid uint32) bool {
	return pid != 0 && !errors.Is(syscall.Kill(int(pid), 0), syscall.ESRCH)
}

// absence says in stable words why the router is not there: a reason is logged
// once.
func absence(err error) string {
	var fe *connfile.FileError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its connection file does not exist"
	case errors.As(err, &fe):
		return fe.What
	case errors.Is(err, connfile.ErrNoEndpoint):
		return "its connection file is stale: nothing listens there"
	case misproven(err):
		return "its connection file is stale: another daemon listens there"
	}
	return "it does not complete a handshake"
}
