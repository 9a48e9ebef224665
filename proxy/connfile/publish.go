package connfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Publish puts f at path atomically: a temporary file 0600 in the same folder,
// fsync, rename. The folder is created 0700 when it is absent. Every folder
// above path, links resolved, must be owned by the effective user or root and
// not be writable for group or others unless it is sticky: whoever may write one
// may put another file in place of this one.
func Publish(path string, f File) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &FileError{path, "its folder cannot be created: " + cause(err), "create it with mode 0700", err}
	}
	if err := checkAncestors(path, dir); err != nil {
		return err
	}
	data := f.Append(nil)
	defer clear(data) // it holds the key
	err := renameio.WriteFile(path, data, 0o600,
		renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return &FileError{path, "cannot be written: " + cause(err), "make its folder writable for this user", err}
	}
	return nil
}

func checkAncestors(path, dir string) error {
	resolved, err := filepath.EvalSymlinks(dir)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		return &FileError{path, "its folder cannot be resolved: " + cause(err), "", err}
	}
	for {
		info, err := os.Lstat(resolved)
		if err != nil {
			return &FileError{path, "a folder above it cannot be examined: " + cause(err), "", err}
		}
		if uid := ownerOf(info); !trusted(uid) {
			return &FileError{path, fmt.Sprintf("folder %q above it is owned by uid %d", resolved, uid), "choose a folder of this user", ErrInsecure}
		}
		if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return &FileError{path, fmt.Sprintf("folder %q above it is writable for others", resolved), "chmod go-w it, or choose another folder", ErrInsecure}
		}
		up := filepath.Dir(resolved)
		if up == resolved {
			return nil
		}
		resolved = up
	}
}

// Remove removes the file at path if it is the one that f was published as, and
// says whether it did. A file that is gone, that belongs to another daemon or
// that can't be read as a connection file is left alone without an error.
func Remove(path string, f File) (bool, error) {
	there, err := Read(path)
	if err != nil || !there.SameDaemon(f) {
		return false, nil
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &FileError{path, "cannot be removed: " + cause(err), "remove it by hand", err}
	}
	return true, nil
}
