package api

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// ErrUnavailable says that nothing answers at the socket. Every such error is an
// [UnavailableError].
var ErrUnavailable = errors.New("no sidecar answers")

// ErrLagged says that the event stream was cut, since its reader fell behind.
var ErrLagged = errors.New("the event stream was cut: its reader fell behind")

// UnavailableError names the socket at which nothing answers, and the remedy.
type UnavailableError struct {
	Socket string
	Err    error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("no sidecar answers at %q: %s", e.Socket, e.remedy())
}

// remedy says what to do about the way a connect failed.
func (e *UnavailableError) remedy() string {
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		return "the socket does not exist; start the sidecar, or name its socket with --socket or its configuration with --config"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "nobody listens there; start the sidecar"
	case errors.Is(e.Err, fs.ErrPermission):
		return "it belongs to another user; ask as the user that the sidecar runs as, or as root"
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, syscall.ECONNRESET), errors.Is(e.Err, syscall.EPIPE):
		return "it closed the connection; ask as the user that the sidecar runs as, or as root"
	}
	return e.Err.Error()
}

func (e *UnavailableError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// Error makes a [Failure] what a client's method returns.
func (f *Failure) Error() string { return f.Message }

// The codes of a [Failure].
const (
	CodeBadRequest       = "bad_request"
	CodeForbidden        = "forbidden"
	CodeNotFound         = "not_found"
	CodeMethodNotAllowed = "method_not_allowed"
	CodeNoRouter         = "no_router"
	CodeUnavailable      = "unavailable"
)
