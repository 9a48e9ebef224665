package wire

import (
	"errors"
	"fmt"
)

var (
	// ErrShort says that more bytes are needed before a header can be read.
	ErrShort = errors.New("frame header is not complete")
	// ErrTooLong says that a header announces a body over [MaxBody].
	ErrTooLong = errors.New("frame body is over 64 MiB")
	// ErrNotObject says that a control body is not a JSON object.
	ErrNotObject = errors.New("control body is not a JSON object")
)

// VersionError says that the peer speaks another envelope version.
type VersionError struct {
	Got uint8 // the version byte as it came
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("peer speaks envelope version %d, not %d", e.Got, Version)
}

// FieldError says that a control body is malformed, and where. Its text is fit
// for a peer: it names members and never holds a value.
type FieldError struct {
	Field string // dotted path of the member, "" for the body itself
	What  string // what is wrong with it
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.What
	}
	return fmt.Sprintf("%q %s", e.Field, e.What)
}
