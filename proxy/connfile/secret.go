package connfile

import (
	"fmt"
	"io"
)

// Secret is a key. Whatever prints, logs or renders one gets "[secret]".
type Secret []byte

const redacted = "[secret]"

// Format writes "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

func (Secret) String() string { return redacted }

// MarshalText gives the redacted text to every encoder that asks.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
