package router

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed says that the link is gone: every question on it is void.
	ErrClosed = errors.New("the link to the router is closed")
	// ErrNoAnswer says that the router did not answer within [AnswerTimeout].
	ErrNoAnswer = errors.New("the router does not answer")
	// ErrEnded says that the router ended a stream.
	ErrEnded = errors.New("the router ended the stream")
	// ErrLagged says that a stream was cut because its reader was too slow.
	ErrLagged = errors.New("the stream's reader is too slow")
	// ErrReply says that the router answered with something else than was asked.
	ErrReply = errors.New("the router's answer is not understood")
)

// RefusedError is the router's Error frame in answer to a question of ours.
type RefusedError struct {
	Op   string
	Code string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s is refused: %q", e.Op, cut(e.Code)) }

// Refused returns the code with which the router refused a question, "" when err
// is no refusal.
func Refused(err error) string {
	var r *RefusedError
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// cut keeps a name that another process chose to a readable length.
func cut(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}
