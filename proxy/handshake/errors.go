package handshake

import (
	"errors"
	"fmt"
)

var (
	// ErrServerProof says that the server does not hold the connection file's
	// key. The client's own proof was not sent.
	ErrServerProof = errors.New("handshake: the server's proof is wrong, it does not hold this key")
	// ErrDaemonID says that the server holds the key and is another daemon than
	// the connection file names. The client's own proof was not sent.
	ErrDaemonID = errors.New("handshake: the server is another daemon than the connection file names")
	// ErrClientProof says that the client does not hold the key.
	ErrClientProof = errors.New("handshake: the client's proof is wrong, it does not hold this key")
	// ErrKey says that a key is shorter than [MinKey] bytes.
	ErrKey = errors.New("handshake: the key is shorter than 32 bytes")
	// ErrSize says that a message is over [MaxMessage] bytes.
	ErrSize = errors.New("handshake: message is over 4096 bytes")
)

// Stage names one of the three messages.
type Stage string

// The messages, in the order they are sent.
const (
	StageClientHello Stage = "client hello"
	StageServerProof Stage = "server proof"
	StageClientAuth  Stage = "client auth"
)

// StageError says at which message a handshake failed. It wraps the cause,
// which is one of the sentinels, a [MessageError] or the transport's own error.
type StageError struct {
	Stage Stage
	Err   error
}

func (e *StageError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.Err) }

func (e *StageError) Unwrap() error { return e.Err }

// MessageError says that a message is malformed. It names a member and never
// holds a value: every value here is a nonce or a proof.
type MessageError struct {
	Field string // the member, "" for the message itself
	What  string
}

func (e *MessageError) Error() string {
	if e.Field == "" {
		return "handshake: message " + e.What
	}
	return fmt.Sprintf("handshake: member %q %s", e.Field, e.What)
}
