package ledger

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"scopeward/table"
)

// maxProblems is how many problems a report lists; it counts all.
const maxProblems = 100

// Report is what a verification found.
type Report struct {
	Entries   uint64    `json:"entries"` // all that are there
	First     uint64    `json:"first"`   // number of the first, 0 for none
	Head      uint64    `json:"head"`    // number of the last one ever appended
	Prefix    Prefix    `json:"prefix_sha256"`
	Contents  uint64    `json:"contents"` // entries with a record
	Ends      uint64    `json:"ends"`
	Compacted uint64    `json:"compacted"` // entries whose record was taken
	Unsorted  uint64    `json:"unsorted"`  // imported, hashed in the order that they recorded
	Changed   uint64    `json:"changed"`   // imported, with a hash that is not of their record
	Problems  uint64    `json:"problems"`
	Listed    []Problem `json:"listed"` // the first of them
}

// Problem is what is wrong with one entry.
type Problem struct {
	Number uint64 `json:"number"` // 0: not of one entry
	What   string `json:"what"`
}

// Sound says whether nothing is wrong: the chain holds from its beginning to its
// head, and every digest is that of its record. A record that was imported with
// another hash is no problem of the chain's, and is counted.
func (r *Report) Sound() bool { return r.Problems == 0 }

func (r *Report) problem(n uint64, format string, args ...any) {
	if r.Problems++; r.Problems <= maxProblems {
		r.Listed = append(r.Listed, Problem{n, fmt.Sprintf(format, args...)})
	}
}

// Verify checks the whole chain, every digest, and that the last entry of each
// scope is the one that is looked up for it.
func (v *View) Verify() (*Report, error) {
	r := &Report{}
	return r, v.read(func(tx *bbolt.Tx) error { return r.verify(tx, nil) })
}

// verify walks the chain. visit, unless nil, sees each entry that can be read
// with the prefix before it.
func (r *Report) verify(tx *bbolt.Tx, visit func(e *Entry, previous table.Digest)) error {
	start, err := readAnchor(tx)
	if err != nil {
		return err
	}
	at := start
	if err := tx.Bucket(bucketEntries).ForEach(func(k, raw []byte) error {
		r.Entries++
		n := number(k)
		if r.First == 0 {
			r.First = n
		}
		if n != at.number+1 {
			r.problem(n, "follows number %d", at.number)
		}
		e, err := parseEntry(raw)
		if err != nil {
			r.problem(n, "can't be read: %v", err)
			at.number = n
			return nil
		}
		if e.Number != n {
			r.problem(n, "says that it is number %d", e.Number)
		}
		if e.PrefixSHA256 != chained(at.prefix, e.RecordSHA256, e.ID) {
			r.problem(n, "prefix_sha256 does not follow from the entry before it")
		}
		r.digest(n, &e)
		if visit != nil {
			visit(&e, at.prefix)
		}
		at = anchor{n, e.PrefixSHA256}
		return nil
	}); err != nil {
		return err
	}
	r.Head, r.Prefix = at.number, Prefix(at.prefix)
	return r.verifyLast(tx, start)
}

// digest checks an entry by itself.
func (r *Report) digest(n uint64, e *Entry) {
	switch {
	case e.Ended():
		r.Ends++
		if e.RecordSHA256 != endDigest(e.ID, e.Cause) {
			r.problem(n, "record_sha256 is not that of the end")
		}
		return
	case e.Compacted():
		r.Compacted++
		return
	}
	r.Contents++
	rec, _, err := table.DecodeRecorded(e.Record)
	switch {
	case err != nil:
		r.problem(n, "the record can't be read: %v", err)
		return
	case rec.Ref != e.ID.Ref || rec.Epoch != e.ID.Epoch:
		r.problem(n, "the record is of another scope")
		return
	}
	reading := read(e, rec.Digest())
	switch {
	case e.Reason != Imported && reading != Current:
		r.problem(n, "record_sha256 is not that of the record")
	case e.Reason != Imported && !bytes.Equal(e.Record, rec.Canonical(nil)):
		r.problem(n, "the record is not in its canonical form")
	case reading == Unsorted:
		r.Unsorted++
	case reading == Changed:
		r.Changed++
	}
}

// verifyLast checks what is looked up for each scope.
func (r *Report) verifyLast(tx *bbolt.Tx, start anchor) error {
	entries := tx.Bucket(bucketEntries)
	return tx.Bucket(bucketScopes).ForEach(func(k, v []byte) error {
		l, ok := parseLast(v)
		if !ok {
			r.problem(0, "the index of scopes can't be read")
			return nil
		}
		if l.number <= start.number && l.ended {
			return nil // a compaction took the entry and kept the end
		}
		e, err := parseEntry(entries.Get(numberKey(l.number)))
		key := scopeKey(e.ID)
		if err != nil || !bytes.Equal(key[:], k) || e.RecordSHA256 != l.digest || e.Ended() != l.ended {
			r.problem(l.number, "is not the entry that the index of scopes says")
		}
		return nil
	})
}
