package sidecar

import "fmt"

// StartError is what an operator has to correct before the sidecar can run: one
// line that names the key or the file, what is wrong with it, and the remedy.
type StartError struct {
	Subject string // a key of the configuration, quoted, or a file
	What    string
	Remedy  string
	Err     error // the cause, nil when there is none
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.Subject, e.What, e.Remedy)
}

func (e *StartError) Unwrap() error { return e.Err }
