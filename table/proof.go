package table

import (
	"encoding/hex"
	"fmt"
)

// ProofHash is the SHA-256 of a scope's bind proof. It is a secret: it prints as
// a placeholder and has no JSON form.
type ProofHash [32]byte

// Format prints a placeholder under every verb.
func (ProofHash) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[redacted]")) }

// MarshalJSON fails: the hash leaves the table by no encoder.
func (ProofHash) MarshalJSON() ([]byte, error) {
	return nil, &FieldError{What: "a bind proof's hash has no JSON form"}
}

// proof reads exactly 64 lowercase hexadecimal characters (section 2).
func (r *reader) proof() (h ProofHash, err error) {
	s, err := r.string()
	if err != nil {
		return h, err
	}
	malformed := &FieldError{What: "is not 64 lowercase hexadecimal characters"}
	if len(s) != hex.EncodedLen(len(h)) {
		return h, malformed
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return h, malformed
		}
	}
	_, _ = hex.Decode(h[:], []byte(s))
	return h, nil
}
