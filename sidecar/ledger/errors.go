package ledger

import (
	"errors"
	"fmt"
)

var (
	// ErrInUse says that another process has the ledger open: a sidecar that runs,
	// as a rule.
	ErrInUse = errors.New("the ledger is in use by another process")
	// ErrNotLedger says that a file is no ledger, or one that is damaged so far
	// that it can't be read.
	ErrNotLedger = errors.New("not a ledger")
	// ErrInsecure says that others than its owner may read or write the file.
	ErrInsecure = errors.New("others have access to the file: chmod it to 600")
	// ErrKnown says that the ledger already holds what is to be imported.
	ErrKnown = errors.New("the ledger holds these entries already")
)

// FileError is an operation on a ledger's file that failed. It wraps the
// package's sentinels and those of io/fs.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("ledger %s: %v", e.Path, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// LineError is the line for which an import was refused. Nothing was imported.
type LineError struct {
	Line int // from 1
	What string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }
