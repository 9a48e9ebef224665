package ledger

import (
	"crypto/sha256"

	"scopeward/table"
)

// Reading is what an entry is to a content (ADR-0134, decisions 7, 8 and 11).
type Reading uint8

const (
	// Current says that the entry's hash is that of the content.
	Current Reading = iota + 1
	// Unsorted says that the entry's hash was taken over the sets in the order
	// that the entry recorded, and that nothing else differs: it is re-keyed.
	Unsorted
	// Changed says that anything else differs.
	Changed
)

var readings = [...]string{Current: "current", Unsorted: "unsorted", Changed: "changed"}

// String is the reading's name, "" for the zero value.
func (r Reading) String() string {
	if int(r) < len(readings) {
		return readings[r]
	}
	return ""
}

// read reads an entry beside a content with digest content.
func read(e *Entry, content table.Digest) Reading {
	if e.RecordSHA256 == content {
		return Current
	}
	if e.Record == nil {
		return Changed
	}
	rec, recorded, err := table.DecodeRecorded(e.Record)
	if err == nil && sha256.Sum256(recorded) == e.RecordSHA256 && rec.Digest() == content {
		return Unsorted
	}
	return Changed
}
