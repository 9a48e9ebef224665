package main

import (
	"errors"

	"scopeward/sidecar/config"
	"scopeward/sidecar/operator/api"
	"scopeward/sidecar/wrapper"
)

// The exit codes. Those over 63 are sysexits' where one fits.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNo       = 3   // the answer is no: not ready, or an open that would be refused
	exitAbsent   = 69  // no sidecar answers
	exitTimeout  = 75  // waited in vain; trying again may help
	exitConfig   = 78  // trying again never helps
	exitNotRun   = 126 // as a shell's
	exitNotFound = 127 // as a shell's
)

// exitCodes tells them to whoever asks for help.
const exitCodes = `Exit codes:
  0    done
  1    failed
  2    wrong usage
  3    the answer is no: status of a sidecar that is not ready, explain of an
       open that would be refused
  69   no sidecar answers
  75   waited in vain
  78   the configuration has to be corrected
  126  exec can't run the program
  127  exec can't find it`

// usageError is a command line that can't be meant.
type usageError struct{ error }

// noError is an answer that is a no.
type noError struct{ error }

// timeoutError is a wait that ended before what was waited for.
type timeoutError struct{ error }

func exitCode(err error) int {
	var (
		usage   usageError
		no      noError
		timeout timeoutError
		conf    *config.Error
		failure *api.Failure
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &failure) && failure.Code == api.CodeBadRequest:
		return exitUsage
	case errors.As(err, &no):
		return exitNo
	case errors.Is(err, api.ErrUnavailable):
		return exitAbsent
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
