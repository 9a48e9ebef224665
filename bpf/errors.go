package bpf

import "errors"

var (
	// ErrNotSupported says that a source of attribution can't work on this host
	// or with these privileges. It is the only error that justifies falling back
	// to another source; whatever else goes wrong is a fault. Every such error is
	// a [NotSupportedError].
	ErrNotSupported = errors.New("attribution is not supported here")

	// ErrNotAttributed says that a connect of our own went unseen: the programs
	// are detached, or the socket filesystem hides processes. Until a self-probe
	// passes again, whatever is not attributed must be taken for unknown.
	ErrNotAttributed = errors.New("our own connect was not attributed")

	// ErrStale says that a PID no longer means the process that was asked about.
	ErrStale = errors.New("the process has ended or its PID was given to another")
)

// NotSupportedError is what is missing, in words for an operator.
type NotSupportedError struct {
	Reason string // what was found
	Remedy string // what would make it work
	Err    error  // the kernel's answer, nil when nothing was tried
}

func (e *NotSupportedError) Error() string {
	s := ErrNotSupported.Error() + ": " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes every NotSupportedError an [ErrNotSupported].
func (e *NotSupportedError) Is(target error) bool { return target == ErrNotSupported }

func (e *NotSupportedError) Unwrap() error { return e.Err }
