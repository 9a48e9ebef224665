package connfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// LockSuffix is added to a path for the name of its lock.
const LockSuffix = ".lock"

// Lock is held on a path until it is released or its process ends.
type Lock struct{ f *os.File }

// TakeLock takes the lock beside path, path+[LockSuffix], without waiting. When
// another process holds it the error wraps [ErrLocked] and names the holder's
// PID. The lock's file stays when the lock is released: removing it would let
// two holders in.
func TakeLock(path string) (*Lock, error) {
	name := path + LockSuffix
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, &FileError{path, "its lock cannot be opened: " + cause(err), "make its folder writable for this user", err}
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &FileError{path, "another sidecar publishes here" + holder(f), "stop it, or choose another connection_file", ErrLocked}
		}
		return nil, &FileError{path, "cannot be locked: " + err.Error(), "", err}
	}
	if err := f.Truncate(0); err == nil {
		// Only for the text above: a lock without it is a lock.
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &Lock{f}, nil
}

func holder(f *os.File) string {
	b, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

// Release gives the lock up. It may be called once.
func (l *Lock) Release() error { return l.f.Close() }
