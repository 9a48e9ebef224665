package ledger

import (
	"crypto/sha256"
	"encoding/binary"

	"scopeward/table"
)

// Prefix is a prefix_sha256 in a report.
type Prefix table.Digest

// String is the prefix in lowercase hexadecimal.
func (p Prefix) String() string { return table.Digest(p).String() }

// MarshalText is String.
func (p Prefix) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// chained is the prefix of an entry that follows the one with prefix previous.
// The encoding is the package comment's: no two different inputs share one.
func chained(previous, record table.Digest, id table.ScopeID) table.Digest {
	var room [256]byte
	b := append(append(room[:0], previous[:]...), record[:]...)
	return sha256.Sum256(appendScope(b, id))
}

// appendScope appends owner, ref and epoch, unambiguously.
func appendScope(b []byte, id table.ScopeID) []byte {
	b = appendCounted(b, id.Owner.Kind.String())
	b = appendCounted(b, id.Owner.ModuleID)
	b = appendCounted(b, id.Ref)
	return binary.BigEndian.AppendUint64(b, id.Epoch)
}

func appendCounted(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
