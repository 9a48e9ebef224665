package ledger

import (
	"encoding/binary"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"scopeward/table"
)

// View is a ledger opened to be read. Several can be open at a time, and none
// while a sidecar has the file.
type View struct {
	path string
	db   *bbolt.DB
}

// OpenView opens the ledger at path to be read. Errors are [FileError].
func OpenView(path string) (*View, error) {
	db, err := openFile(path, toRead)
	if err != nil {
		return nil, err
	}
	return &View{path: path, db: db}, nil
}

// Close closes the view.
func (v *View) Close() error { return v.db.Close() }

// Entries visits the entries in order, until visit fails.
func (v *View) Entries(visit func(*Entry) error) error {
	return v.read(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketEntries).ForEach(func(k, raw []byte) error {
			e, err := parseEntry(raw)
			if err != nil {
				return fmt.Errorf("%w: entry %d: %w", ErrNotLedger, number(k), err)
			}
			return visit(&e)
		})
	})
}

// Scope visits the entries of one session, in order.
func (v *View) Scope(id table.ScopeID, visit func(*Entry) error) error {
	return v.Entries(func(e *Entry) error {
		if e.ID != id {
			return nil
		}
		return visit(e)
	})
}

func (v *View) read(do func(*bbolt.Tx) error) error {
	if err := view(v.db, do); err != nil {
		return &FileError{Path: v.path, Err: err}
	}
	return nil
}

// Snapshot writes a copy of the ledger's file as it is now to w, a ledger that
// [OpenView] reads. It goes on beside the writer.
func (l *Ledger) Snapshot(w io.Writer) error {
	return view(l.db, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// number is the number in a key, 0 for a key that is none.
func number(k []byte) uint64 {
	if len(k) != numberLen {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}
