package connfile

import (
	"errors"
	"fmt"
)

var (
	// ErrInsecure says that others than the owner may read or replace a file.
	ErrInsecure = errors.New("not safe from other users")
	// ErrMalformed says that a file is no connection file of schema 1.
	ErrMalformed = errors.New("not a connection file")
	// ErrWireVersion says that a file names another envelope version than 2.
	ErrWireVersion = errors.New("another wire version")
	// ErrLocked says that another process holds a path's lock.
	ErrLocked = errors.New("already in use")
	// ErrNoEndpoint says that none of a file's endpoints could be reached.
	ErrNoEndpoint = errors.New("no endpoint answers")
)

// FileError is an error about one file. Its text is one line: the file, what is
// wrong and what to do. It wraps one of the sentinels or the system's error.
type FileError struct {
	Path   string
	What   string
	Remedy string
	Err    error
}

func (e *FileError) Error() string {
	s := fmt.Sprintf("connection file %q: %s", e.Path, e.What)
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *FileError) Unwrap() error { return e.Err }
