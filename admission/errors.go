package admission

import (
	"errors"

	"scopeward/table"
)

// SelectorError says that a scope selector is malformed, and where: the open's
// invalid_control_body. Its text is fit for a peer and a log: it names a member,
// quoted and cut, and never holds a value.
type SelectorError struct {
	Member string // the member's name as it came, "" for the selector itself
	What   string
}

func (e *SelectorError) Error() string {
	if e.Member == "" {
		return "scope " + e.What
	}
	return "scope member " + table.QuoteName(e.Member) + " " + e.What
}

var (
	// ErrCapabilities says that a manifest's capabilities cannot be read. Nothing
	// is provided then.
	ErrCapabilities = errors.New("capabilities is not an object whose provides is a list of strings")
	// ErrCallMode says that a call_mode is not a string.
	ErrCallMode = errors.New("call_mode is not a string")
)
