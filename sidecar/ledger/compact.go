package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// CompactReport is what a compaction did.
type CompactReport struct {
	Records uint64 `json:"records"` // records taken from entries that stay
	Entries uint64 `json:"entries"` // entries taken from the chain's beginning
	Bytes   int64  `json:"bytes"`   // by how much the file shrank
	Head    uint64 `json:"head"`    // as it was: the last entry and its prefix stay
	Prefix  Prefix `json:"prefix_sha256"`
}

// Compact takes from the ledger at path what no longer says what is granted:
// entries created before the given time, Unix milliseconds, that a later entry of
// their scope supersedes, and ends. They are taken whole from the chain's
// beginning, up to the first entry that has to stay; the prefix before that one
// is kept as where the chain begins. Of those after it only the record is taken:
// their hashes keep the chain verifiable. The last content of each scope that has
// not ended stays, and so do remembered ends.
//
// A ledger that does not verify is left as it is. The file is replaced in one
// step.
func Compact(path string, before int64) (*CompactReport, error) {
	db, err := openFile(path, toWrite)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	r := &CompactReport{}
	if err := r.compact(db, path, before); err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return r, db.Close()
}

func (r *CompactReport) compact(db *bbolt.DB, path string, before int64) error {
	next := path + ".compact"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return bare(err)
	}
	defer os.Remove(next)
	into, err := openFile(next, toWrite)
	if err != nil {
		return err
	}
	defer into.Close()
	if err := view(db, func(from *bbolt.Tx) error {
		if err := checkSound(from); err != nil {
			return err
		}
		return update(into, func(to *bbolt.Tx) error { return r.copy(from, to, before) })
	}); err != nil {
		return err
	}
	if err := into.Close(); err != nil {
		return err
	}
	if err := r.shrunk(path, next); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return bare(err)
	}
	return syncFolder(path)
}

func checkSound(tx *bbolt.Tx) error {
	report := &Report{}
	if err := report.verify(tx, nil); err != nil {
		return err
	}
	if !report.Sound() {
		return fmt.Errorf("does not verify (%d problems): nothing was compacted", report.Problems)
	}
	return nil
}

// copy copies what stays.
func (r *CompactReport) copy(from, to *bbolt.Tx, before int64) error {
	start, err := readAnchor(from)
	if err != nil {
		return err
	}
	scopes, entries := from.Bucket(bucketScopes), to.Bucket(bucketEntries)
	entries.FillPercent = 1
	r.Head, r.Prefix = start.number, Prefix(start.prefix)
	if err := from.Bucket(bucketEntries).ForEach(func(k, raw []byte) error {
		e, err := parseEntry(raw)
		if err != nil {
			return err
		}
		r.Head, r.Prefix = e.Number, Prefix(e.PrefixSHA256)
		key := scopeKey(e.ID)
		l, known := parseLast(scopes.Get(key[:]))
		stays := e.CreatedAt >= before || known && l.number == e.Number && !e.Ended()
		switch {
		case !stays && r.leading(start, &e):
			start = anchor{e.Number, e.PrefixSHA256}
			r.Entries++
			return nil
		case !stays && e.Record != nil:
			e.Record = nil
			r.Records++
			return entries.Put(k, e.AppendJSON(nil))
		}
		return entries.Put(k, raw)
	}); err != nil {
		return err
	}
	if start.number > 0 {
		if err := to.Bucket(bucketMeta).Put(keyAnchor, start.append(nil)); err != nil {
			return err
		}
	}
	if err := copyEnds(from, to); err != nil {
		return err
	}
	return copyScopes(from, to, start.number)
}

// leading says whether nothing before e stays.
func (r *CompactReport) leading(start anchor, e *Entry) bool { return e.Number == start.number+1 }

// copyScopes copies what is looked up, but for ends that are neither in the chain
// nor remembered.
func copyScopes(from, to *bbolt.Tx, gone uint64) error {
	remembered := map[uint64]struct{}{}
	ends := from.Bucket(bucketEnds)
	if err := ends.ForEachBucket(func(owner []byte) error {
		return ends.Bucket(owner).ForEach(func(k, _ []byte) error {
			remembered[number(k)] = struct{}{}
			return nil
		})
	}); err != nil {
		return err
	}
	into := to.Bucket(bucketScopes)
	into.FillPercent = 1
	return from.Bucket(bucketScopes).ForEach(func(k, v []byte) error {
		if l, ok := parseLast(v); ok && l.number <= gone {
			if _, kept := remembered[l.number]; !kept {
				return nil
			}
		}
		return into.Put(k, v)
	})
}

func copyEnds(from, to *bbolt.Tx) error {
	ends, into := from.Bucket(bucketEnds), to.Bucket(bucketEnds)
	return ends.ForEachBucket(func(owner []byte) error {
		b, err := into.CreateBucket(owner)
		if err != nil {
			return err
		}
		b.FillPercent = 1
		if err := b.SetSequence(ends.Bucket(owner).Sequence()); err != nil {
			return err
		}
		return ends.Bucket(owner).ForEach(b.Put)
	})
}

func (r *CompactReport) shrunk(path, next string) error {
	was, err := os.Stat(path)
	if err != nil {
		return bare(err)
	}
	is, err := os.Stat(next)
	if err != nil {
		return bare(err)
	}
	r.Bytes = was.Size() - is.Size()
	return nil
}

// syncFolder makes a rename durable.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return bare(err)
	}
	defer d.Close()
	return d.Sync()
}
