package install

import (
	"errors"
	"fmt"
)

// ErrForeign says that a file in the way is not ours.
var ErrForeign = errors.New("is there and is not ours: move it away, or keep what installed it")

// FileError is what is wrong with one file. It ends with the remedy.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s %v", e.Path, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }
