package systemd

import "errors"

var (
	// ErrListener says that the manager handed over a socket that we can't accept
	// on: its unit has to be corrected.
	ErrListener = errors.New("the service manager's socket is not for us")
)
