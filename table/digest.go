package table

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is a record's identity: SHA-256 over its canonical form. It is public,
// and equal in every process, whatever order the sets came in (ADR-0134).
type Digest [sha256.Size]byte

// String is the digest in lowercase hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Digest is the record's, computed when it was decoded.
func (r *Record) Digest() Digest { return r.digest }

// canonicalRoom is the stack room for a canonical form of common size, in bytes.
const canonicalRoom = 512

func (r *Record) computeDigest() Digest {
	var room [canonicalRoom]byte
	return sha256.Sum256(r.Canonical(room[:0]))
}
