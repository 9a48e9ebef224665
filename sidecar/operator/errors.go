package operator

import (
	"errors"
	"fmt"
)

// ErrSocketTaken says that a live process answers at the operator socket's path.
var ErrSocketTaken = errors.New("another process answers there")

// SocketError is a problem with the operator socket: one line with its remedy.
type SocketError struct {
	Path   string
	What   string
	Remedy string
	Err    error
}

func (e *SocketError) Error() string {
	return fmt.Sprintf("\"operator.socket\" %q: %s; %s", e.Path, e.What, e.Remedy)
}

func (e *SocketError) Unwrap() error { return e.Err }
