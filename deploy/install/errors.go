package install

import (
	"errors"
	"fmt"
)

// ErrForeign says that a file in the way is not ours.
var ErrForeign = errors.New("is there and is not ours: move it away, or keep what installed it")

// ParamsError says which parameter can't be meant, and ends with the remedy.
type ParamsError struct{ What string }

func (e *ParamsError) Error() string { return e.What }

func paramsError(format string, args ...any) error { return &ParamsError{fmt.Sprintf(format, args...)} }

// FileError is what is wrong with one file. It ends with the remedy.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s %v", e.Path, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }
