package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"scopeward/table"
)

// format names the layout below in the file itself.
const format = "scopeward ledger 1"

// The buckets of the file.
var (
	// bucketMeta holds the format and, after a compaction, the anchor: the number
	// and the prefix of the last entry that is gone.
	bucketMeta = []byte("meta")
	keyFormat  = []byte("format")
	keyAnchor  = []byte("anchor")
	// bucketEntries holds each entry's JSON form by its number, big-endian.
	bucketEntries = []byte("entries")
	// bucketScopes holds the last entry of each scope: [scopeKey] to [last].
	bucketScopes = []byte("scopes")
	// bucketEnds holds a bucket for each owner with its remembered ends, by the
	// number of the end's entry.
	bucketEnds = []byte("ends")
)

const (
	digestLen = sha256.Size
	numberLen = 8
	lastLen   = numberLen + 1 + digestLen
)

// mapped is how much of a file is mapped from the start, in bytes: up to that it
// grows without being mapped again, which costs a copy of what is under way. It
// takes addresses and no memory.
const mapped = 256 << 20

// lockFor is how long a file that another process holds is waited for.
const lockFor = time.Second

// scopeKey is a scope's key in the file. A ref may be longer than a key can be,
// so it is hashed.
func scopeKey(id table.ScopeID) [digestLen]byte {
	var room [256]byte
	return sha256.Sum256(appendScope(room[:0], id))
}

// ownerKey is an owner's key in the file.
func ownerKey(p table.Principal) []byte {
	sum := sha256.Sum256(appendCounted(appendCounted(nil, p.Kind.String()), p.ModuleID))
	return sum[:]
}

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// last is what the file knows of a scope without its entry.
type last struct {
	number  uint64
	ended   bool
	foreign bool         // imported: it may be unsorted
	digest  table.Digest // record_sha256
}

// The bits of a last's state.
const (
	stateEnded   = 1 << 0
	stateForeign = 1 << 1
)

func (l last) append(b []byte) []byte {
	var state byte
	if l.ended {
		state |= stateEnded
	}
	if l.foreign {
		state |= stateForeign
	}
	b = append(binary.BigEndian.AppendUint64(b, l.number), state)
	return append(b, l.digest[:]...)
}

func parseLast(v []byte) (l last, ok bool) {
	if len(v) != lastLen {
		return l, false
	}
	l.number = binary.BigEndian.Uint64(v)
	l.ended = v[numberLen]&stateEnded != 0
	l.foreign = v[numberLen]&stateForeign != 0
	copy(l.digest[:], v[numberLen+1:])
	return l, true
}

// anchor is where the chain begins: at its first entry, or after what a
// compaction took.
type anchor struct {
	number uint64
	prefix table.Digest
}

func (a anchor) append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, a.number), a.prefix[:]...)
}

func readAnchor(tx *bbolt.Tx) (a anchor, err error) {
	v := tx.Bucket(bucketMeta).Get(keyAnchor)
	switch len(v) {
	case 0:
	case numberLen + digestLen:
		a.number = binary.BigEndian.Uint64(v)
		copy(a.prefix[:], v[numberLen:])
	default:
		err = ErrNotLedger
	}
	return a, err
}

// readHead is the last entry's number and prefix, or the anchor.
func readHead(tx *bbolt.Tx) (anchor, error) {
	k, v := tx.Bucket(bucketEntries).Cursor().Last()
	if k == nil {
		return readAnchor(tx)
	}
	e, err := parseEntry(v)
	if err != nil || len(k) != numberLen || e.Number != binary.BigEndian.Uint64(k) {
		return anchor{}, fmt.Errorf("%w: its last entry can't be read", ErrNotLedger)
	}
	return anchor{e.Number, e.PrefixSHA256}, nil
}

// access is how a file is opened.
type access uint8

const (
	toRead access = iota + 1
	// toWrite makes the file when there is none.
	toWrite
)

// openFile opens a ledger's file and locks it. It is checked as far as its format
// goes. Errors are [FileError].
func openFile(path string, how access) (*bbolt.DB, error) {
	for {
		db, current, err := lockFile(path, how)
		if err != nil {
			return nil, &FileError{Path: path, Err: err}
		}
		if current {
			return db, nil
		}
		// A compaction replaced the file while its lock was waited for.
		_ = db.Close()
	}
}

func lockFile(path string, how access) (db *bbolt.DB, current bool, err error) {
	defer recovered(&err)
	var file *os.File
	opt := &bbolt.Options{
		Timeout: lockFor, ReadOnly: how == toRead, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			file = f
			return f, err
		},
	}
	if how == toWrite {
		opt.InitialMmapSize = mapped
	} else {
		// bbolt tells an absent file from an unreadable one no better.
		if _, err := os.Stat(path); err != nil {
			return nil, false, bare(err)
		}
	}
	db, err = bbolt.Open(path, 0o600, opt)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, false, ErrInUse
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return nil, false, fmt.Errorf("%w: %w", ErrNotLedger, err)
	case err != nil:
		return nil, false, bare(err)
	}
	held, err := file.Stat()
	if err == nil && held.Mode().Perm()&0o077 != 0 {
		err = ErrInsecure
	}
	if err == nil {
		if there, statErr := os.Stat(path); statErr == nil && os.SameFile(held, there) {
			err = checkFormat(db, how)
			current = true
		}
	}
	if err != nil {
		_ = db.Close()
		return nil, false, err
	}
	return db, current, nil
}

// checkFormat reads the format, and writes it into a file that is new.
func checkFormat(db *bbolt.DB, how access) error {
	var found string
	fresh := false
	err := db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil {
			found = string(meta.Get(keyFormat))
		} else if k, _ := tx.Cursor().First(); k == nil {
			fresh = true
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case fresh && how == toWrite:
		return db.Update(layOut)
	case found != format:
		return fmt.Errorf("%w of this version", ErrNotLedger)
	}
	return nil
}

func layOut(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketMeta, bucketEntries, bucketScopes, bucketEnds} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyFormat, []byte(format))
}

// recovered turns the store's panics over a damaged file into errors.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrNotLedger, r)
	}
}

// view and update run a transaction. A damaged file is an error.
func view(db *bbolt.DB, do func(*bbolt.Tx) error) (err error) {
	defer recovered(&err)
	return db.View(do)
}

func update(db *bbolt.DB, do func(*bbolt.Tx) error) (err error) {
	defer recovered(&err)
	return db.Update(do)
}

// bare is err without the path that a [FileError] names.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
