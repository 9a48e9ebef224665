package ledger

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"scopeward/table"
)

// maxLine is how long a line of an import may be, in bytes: more than a frame of
// the wire can hold.
const maxLine = 32 << 20

// ImportReport is what an import did.
type ImportReport struct {
	Entries  uint64 `json:"entries"`
	Ends     uint64 `json:"ends"`
	Unsorted uint64 `json:"unsorted"` // will be re-keyed when their scopes are next accepted unchanged
	Changed  uint64 `json:"changed"`  // have a hash that is not of their record
	Head     uint64 `json:"head"`     // number of the last entry after it
}

// Import appends the entries that r holds, one JSON object a line in the form of
// [Entry.AppendJSON], to the ledger at path, and makes it when it is not there.
//
// The foreign chain is checked first, with the hashes that it stores, from its
// first line on: a line with number 1 follows 32 zero bytes, and any other number
// can be checked from the second line. A line that breaks it, can't be read, or
// holds a secret refuses all of it.
//
// Each entry keeps its record, record_sha256 and cause, is given the next number
// and prefix here, and says in origin what it was. It becomes the last entry of
// its scope where the ledger knew nothing of the scope: what was granted or ended
// here stays. now is Unix milliseconds.
func Import(path string, r io.Reader, now int64) (*ImportReport, error) {
	entries, err := readForeign(r)
	if err != nil {
		return nil, err
	}
	db, err := openFile(path, toWrite)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	report := &ImportReport{}
	if err := update(db, func(tx *bbolt.Tx) error { return report.append(tx, entries, now) }); err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return report, db.Close()
}

// foreign is an entry of another ledger and its reading.
type foreign struct {
	Entry
	reading Reading
}

func readForeign(r io.Reader) ([]foreign, error) {
	var list []foreign
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	at := anchor{}
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		f, err := parseForeign(line)
		if err != nil {
			return nil, &LineError{n, err.Error()}
		}
		whole := len(list) > 0 || f.Number == 1
		if whole && f.Number != at.number+1 {
			return nil, &LineError{n, fmt.Sprintf("number %d follows number %d", f.Number, at.number)}
		}
		if whole && f.PrefixSHA256 != chained(at.prefix, f.RecordSHA256, f.ID) {
			return nil, &LineError{n, "prefix_sha256 does not follow from the line before it"}
		}
		at = anchor{f.Number, f.PrefixSHA256}
		list = append(list, f)
	}
	if err := lines.Err(); err != nil {
		return nil, &LineError{n + 1, err.Error()}
	}
	return list, nil
}

func parseForeign(line []byte) (f foreign, err error) {
	if f.Entry, err = parseEntry(line); err != nil {
		return f, err
	}
	if f.Ended() {
		if f.RecordSHA256 != endDigest(f.ID, f.Cause) {
			return f, fmt.Errorf("record_sha256 is not that of the end")
		}
		return f, nil
	}
	if f.Compacted() {
		return f, nil
	}
	rec, recorded, err := table.DecodeRecorded(f.Record)
	if err != nil {
		return f, fmt.Errorf("the record: %w", err)
	}
	f.Record = recorded
	if rec.Ref != f.ID.Ref || rec.Epoch != f.ID.Epoch {
		return f, fmt.Errorf("the record is of another scope")
	}
	f.reading = read(&f.Entry, rec.Digest())
	return f, nil
}

func (r *ImportReport) append(tx *bbolt.Tx, entries []foreign, now int64) error {
	if err := checkUnknown(tx, entries); err != nil {
		return err
	}
	a, err := newAppender(tx, MaxEnds)
	if err != nil {
		return err
	}
	ours := map[table.ScopeID]bool{}
	for i := range entries {
		if err := a.foreign(&entries[i].Entry, now, ours); err != nil {
			return err
		}
		switch entries[i].reading {
		case Unsorted:
			r.Unsorted++
		case Changed:
			r.Changed++
		}
		if entries[i].Ended() {
			r.Ends++
		}
	}
	r.Entries, r.Head = a.added.entries, a.head.number
	return a.finish()
}

// checkUnknown fails when the ledger holds the last of entries already, imported
// or its own.
func checkUnknown(tx *bbolt.Tx, entries []foreign) error {
	if len(entries) == 0 {
		return nil
	}
	end := entries[len(entries)-1].PrefixSHA256
	return tx.Bucket(bucketEntries).ForEach(func(_, raw []byte) error {
		e, err := parseEntry(raw)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotLedger, err)
		}
		if e.PrefixSHA256 == end || e.Origin != nil && e.Origin.PrefixSHA256 == end {
			return ErrKnown
		}
		return nil
	})
}

// foreign appends an imported entry. ours remembers which scopes were known
// before the import.
func (a *appender) foreign(f *Entry, now int64, ours map[table.ScopeID]bool) error {
	key := scopeKey(f.ID)
	before, known := a.lookup(key)
	if _, seen := ours[f.ID]; !seen {
		ours[f.ID] = known
	}
	e := Entry{
		CreatedAt: now, Reason: Imported, Cause: f.Cause, ID: f.ID,
		Record: f.Record, RecordSHA256: f.RecordSHA256,
		Origin: &Origin{Number: f.Number, CreatedAt: f.CreatedAt, Reason: f.Reason, PrefixSHA256: f.PrefixSHA256},
	}
	if err := a.chain(&e); err != nil || ours[f.ID] {
		return err
	}
	if known && before.ended {
		if err := a.forget(f.ID, before.number); err != nil {
			return err
		}
	}
	a.index(key, &e)
	if !e.Ended() {
		return nil
	}
	return a.remember(e.ID, e.Cause, e.Number)
}
