package main

import (
	"errors"

	"scopeward/sidecar/config"
	"scopeward/sidecar/wrapper"
)

// The exit codes. Those over 63 are sysexits' where one fits.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitTimeout  = 75  // waited in vain; trying again may help
	exitConfig   = 78  // trying again never helps
	exitNotRun   = 126 // as a shell's
	exitNotFound = 127 // as a shell's
)

// usageError is a command line that can't be meant.
type usageError struct{ error }

// timeoutError is a wait that ended before what was waited for.
type timeoutError struct{ error }

func exitCode(err error) int {
	var (
		usage   usageError
		timeout timeoutError
		conf    *config.Error
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &timeout):
		return exitTimeout
	case errors.As(err, &conf):
		return exitConfig
	case errors.Is(err, wrapper.ErrNotFound):
		return exitNotFound
	case errors.Is(err, wrapper.ErrNotRun):
		return exitNotRun
	}
	return exitFailed
}
