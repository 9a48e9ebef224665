package connfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxSize is the largest file that is read, in bytes. A real one has about 600.
const maxSize = 1 << 20

// Read reads the connection file at path. It judges the file it opened, by
// fstat, so that nobody can swap it between the look and the read: a regular
// file, owned by the effective user or root, with no permission for group or
// others. Symbolic links are followed, as the router's own clients follow them.
//
// A missing file is fs.ErrNotExist under a [FileError].
func Read(path string) (File, error) {
	// Without O_NONBLOCK a pipe at path would hold the open for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, openError(path, err)
	}
	defer f.Close()
	if err := checkOpened(path, f); err != nil {
		return File{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	defer clear(data) // it holds the key
	if err != nil {
		return File{}, &FileError{path, "cannot be read: " + cause(err), "", err}
	}
	if len(data) > maxSize {
		return File{}, &FileError{path, "is over 1 MiB", "name the router's connection file", ErrMalformed}
	}
	file, err := Parse(data)
	if err != nil {
		return File{}, &FileError{path, err.Error(), parseRemedy(err), err}
	}
	return file, nil
}

func parseRemedy(err error) string {
	if errors.Is(err, ErrWireVersion) {
		return "this scopeward and that router need the same envelope version"
	}
	return "name the router's connection file, or let the router write it anew"
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &FileError{path, "does not exist", "start the router, or name the file it writes", err}
	case errors.Is(err, fs.ErrPermission):
		return &FileError{path, "may not be opened", "run as the user that owns it", err}
	}
	return &FileError{path, "cannot be opened: " + cause(err), "", err}
}

// cause is an error without the path that the caller names already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func checkOpened(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return &FileError{path, "cannot be examined: " + cause(err), "", err}
	}
	if !info.Mode().IsRegular() {
		return &FileError{path, "is not a regular file", "name the router's connection file", ErrMalformed}
	}
	if uid := ownerOf(info); !trusted(uid) {
		return &FileError{path, fmt.Sprintf("is owned by uid %d", uid), "run as its owner, or let the router write it anew", ErrInsecure}
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return &FileError{path, fmt.Sprintf("has mode %#o, its key is open to others", perm), "chmod 600 it and restart the router for a new key", ErrInsecure}
	}
	return nil
}

func ownerOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

// trusted reports whether uid is the effective user or root.
func trusted(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }
