package scopewatch

import (
	"errors"
	"fmt"
)

var (
	// errEnded says that the router ended the feed by itself.
	errEnded = errors.New("the router ended scope.subscribe")
	// errCursor says that a router refused a cursor that it was not given.
	errCursor = errors.New("the router refused a cursor that scope.subscribe did not name")
)

// RefusedError says that the router refused scope.subscribe or a Hello.
type RefusedError struct {
	Code    string
	Message string
}

// Error names the code.
func (e *RefusedError) Error() string { return fmt.Sprintf("refused %s: %.200q", e.Code, e.Message) }
