package ledger

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"scopeward/table"
)

// appender appends entries within one transaction, up to finish.
type appender struct {
	entries *bbolt.Bucket
	scopes  *bbolt.Bucket
	ends    *bbolt.Bucket
	head    anchor
	maxEnds int
	added   tally
	// moved are the scopes whose last entry is a new one. Their keys are hashes:
	// put in order, once, they cost the store least.
	moved map[[digestLen]byte]last

	record []byte // of the entry under way
	values []byte // of entries that were put
}

// How many bytes the values of entries are allocated in, and how many an entry of
// common size takes beside its record. A larger one moves on by itself.
const (
	valuesRoom = 256 << 10
	entryRoom  = 1 << 10
)

// tally counts what a transaction appended.
type tally struct {
	entries uint64
	rekeyed uint64
}

func newAppender(tx *bbolt.Tx, maxEnds int) (*appender, error) {
	head, err := readHead(tx)
	if err != nil {
		return nil, err
	}
	a := &appender{
		entries: tx.Bucket(bucketEntries), scopes: tx.Bucket(bucketScopes), ends: tx.Bucket(bucketEnds),
		head: head, maxEnds: maxEnds, moved: map[[digestLen]byte]last{},
	}
	a.entries.FillPercent = 1 // numbers only grow
	return a, nil
}

// content appends a content, unless the scope's last entry is of it.
func (a *appender) content(c table.Content, at int64) error {
	key := scopeKey(c.ID)
	reason := reasonOf(c.Outcome)
	before, known := a.lookup(key)
	switch {
	case known && before.ended:
		// It was ended where tombstones are not kept, and is there again.
		if err := a.forget(c.ID, before.number); err != nil {
			return err
		}
	case known:
		switch a.readLast(before, c.Record.Digest()) {
		case Current:
			return nil
		case Unsorted:
			reason = Canonicalized
			a.added.rekeyed++
		default:
			reason = Updated
		}
	}
	return a.put(key, Entry{
		CreatedAt: at, Reason: reason, ID: c.ID,
		Record: a.canonical(c.Record), RecordSHA256: c.Record.Digest(),
	})
}

// readLast reads a scope's last entry beside a content.
func (a *appender) readLast(before last, content table.Digest) Reading {
	switch {
	case before.digest == content:
		return Current
	case !before.foreign: // ours are sorted
		return Changed
	}
	e, err := parseEntry(a.entries.Get(numberKey(before.number)))
	if err != nil {
		return Changed
	}
	return read(&e, content)
}

// end appends an end, unless the scope's last entry is one.
func (a *appender) end(end table.End, at int64) error {
	key := scopeKey(end.ID)
	if before, known := a.lookup(key); known && before.ended {
		return nil
	}
	if err := a.put(key, Entry{
		CreatedAt: at, Reason: Ended, Cause: end.Cause, ID: end.ID,
		RecordSHA256: endDigest(end.ID, end.Cause),
	}); err != nil {
		return err
	}
	return a.remember(end.ID, end.Cause, a.head.number)
}

// put chains an entry and makes it its scope's last.
func (a *appender) put(key [digestLen]byte, e Entry) error {
	if err := a.chain(&e); err != nil {
		return err
	}
	a.index(key, &e)
	return nil
}

// chain appends an entry as the next number.
func (a *appender) chain(e *Entry) error {
	e.Number = a.head.number + 1
	e.PrefixSHA256 = chained(a.head.prefix, e.RecordSHA256, e.ID)
	if err := a.entries.Put(numberKey(e.Number), a.keep(e)); err != nil {
		return err
	}
	a.head = anchor{e.Number, e.PrefixSHA256}
	a.added.entries++
	return nil
}

// lookup is what is known of a scope's last entry.
func (a *appender) lookup(key [digestLen]byte) (last, bool) {
	if l, found := a.moved[key]; found {
		return l, true
	}
	return parseLast(a.scopes.Get(key[:]))
}

// canonical is a record's canonical form, good until the next one.
func (a *appender) canonical(rec *table.Record) []byte {
	a.record = rec.Canonical(a.record[:0])
	return a.record
}

// keep is an entry's form in the file, good until the transaction's end. Many of
// them share one allocation.
func (a *appender) keep(e *Entry) []byte {
	if room := cap(a.values) - len(a.values); room < len(e.Record)+entryRoom {
		a.values = make([]byte, 0, valuesRoom+len(e.Record))
	}
	from := len(a.values)
	a.values = e.AppendJSON(a.values)
	return a.values[from:len(a.values):len(a.values)]
}

func (a *appender) index(key [digestLen]byte, e *Entry) {
	a.moved[key] = last{number: e.Number, ended: e.Ended(), foreign: e.Reason == Imported, digest: e.RecordSHA256}
}

// finish puts what has to be looked up.
func (a *appender) finish() error {
	keys := slices.SortedFunc(maps.Keys(a.moved), func(x, y [digestLen]byte) int { return bytes.Compare(x[:], y[:]) })
	for _, k := range keys {
		if err := a.scopes.Put(k[:], a.moved[k].append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps an end beside its entry, and forgets the owner's oldest past the
// bound.
func (a *appender) remember(id table.ScopeID, c table.Cause, number uint64) error {
	b, err := a.ends.CreateBucketIfNotExists(ownerKey(id.Owner))
	if err != nil {
		return err
	}
	b.FillPercent = 1
	if err := b.Put(numberKey(number), appendEnd(nil, id, c)); err != nil {
		return err
	}
	// The sequence is how many the bucket holds.
	n := b.Sequence() + 1
	for ; n > uint64(a.maxEnds); n-- {
		oldest, _ := b.Cursor().First()
		if err := b.Delete(oldest); err != nil {
			return err
		}
	}
	return b.SetSequence(n)
}

// forget lets go of an end that did not last.
func (a *appender) forget(id table.ScopeID, number uint64) error {
	b := a.ends.Bucket(ownerKey(id.Owner))
	if b == nil || b.Get(numberKey(number)) == nil {
		return nil
	}
	if err := b.Delete(numberKey(number)); err != nil {
		return err
	}
	return b.SetSequence(b.Sequence() - 1)
}

// appendEnd appends an end's form in the file: its cause, its scope.
func appendEnd(b []byte, id table.ScopeID, c table.Cause) []byte {
	return appendScope(append(b, byte(c)), id)
}

func parseEnd(v []byte) (end table.End, ok bool) {
	if len(v) == 0 {
		return end, false
	}
	end.Cause = table.Cause(v[0])
	v = v[1:]
	var kind string
	for _, s := range []*string{&kind, &end.ID.Owner.ModuleID, &end.ID.Ref} {
		if len(v) < numberLen {
			return end, false
		}
		n := binary.BigEndian.Uint64(v)
		if v = v[numberLen:]; n > uint64(len(v)) {
			return end, false
		}
		*s, v = string(v[:n]), v[n:]
	}
	for k := table.Reserved; k <= table.Unverified; k++ {
		if kind == k.String() {
			end.ID.Owner.Kind = k
		}
	}
	if len(v) != numberLen || end.ID.Owner.Kind == 0 || end.Cause.String() == "" {
		return end, false
	}
	end.ID.Epoch = binary.BigEndian.Uint64(v)
	return end, true
}
