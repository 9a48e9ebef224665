package api

import (
	"errors"
	"fmt"
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
