package wrapper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

var (
	// ErrNotFound says that there is no such program.
	ErrNotFound = errors.New("program not found")
	// ErrNotRun says that the program is there and can't be run.
	ErrNotRun = errors.New("program can't be run")
)

// Find returns the path of program, looked up in PATH as a shell would. It is
// asked before any waiting: a program that is not there never will be run.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return filepath.Abs(path)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%w: %q: name a program after --", ErrNotFound, program)
	}
	return "", fmt.Errorf("%w: %q: make it executable for this user", ErrNotRun, program)
}

// Exec replaces this process by the program at path. It returns only when that
// fails. Descriptors above 2 that were inherited stay open: we opened ours
// close-on-exec and theirs are not.
func Exec(path string, args, env []string) error {
	err := syscall.Exec(path, args, env)
	return fmt.Errorf("%w: %q: %w", ErrNotRun, path, err)
}
