package table

import (
	"crypto/sha256"
	"sync"
)

// recall is an owner's last accepted full set as it came: each record by the
// digest of its bytes. A set that is sent again is mostly the bytes of the last
// one, and those need no second decoding. What decoding makes of a record depends
// on its bytes alone, so the same bytes are the same record.
type recall struct {
	mu      sync.Mutex
	records map[[sha256.Size]byte]decoded // never changed once it is here
}

// decoded is a record with what decoding found out about it.
type decoded struct {
	record         *Record
	onlyIfIdle     bool
	targetsInvalid bool
	contradiction  Code
}

func (r *recall) known() map[[sha256.Size]byte]decoded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records
}

func (r *recall) keep(records map[[sha256.Size]byte]decoded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = records
}

// DecodeSync is the function of that name, for a body of owner's: records that
// stood in its last accepted full set byte for byte are not decoded again. It
// needs no lock of the table's.
func (t *Table) DecodeSync(owner string, body []byte) (*SyncCall, *Refusal) {
	if len(body) <= longBody {
		return DecodeSync(body)
	}
	kept, _ := t.recalls.LoadOrStore(owner, &recall{})
	c := &SyncCall{call{op: opSync, full: true, recall: kept.(*recall)}}
	if err := c.decode(body, syncMembers); err != nil {
		return nil, malformed(err)
	}
	return c, nil
}

// entryOnce reads one record, or recognizes it.
func (c *call) entryOnce(r, within *reader, known map[[sha256.Size]byte]decoded) (entry, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return entry{}, err
	}
	sum := sha256.Sum256(raw)
	d, ok := known[sum]
	if !ok {
		within.reset(raw)
		e, err := within.entry()
		if err != nil {
			return entry{}, err
		}
		d = decoded{e.record, e.onlyIfIdle, e.targetsInvalid, e.contradiction}
	}
	c.met[sum] = d
	return entry{record: d.record, onlyIfIdle: d.onlyIfIdle, targetsInvalid: d.targetsInvalid, contradiction: d.contradiction}, nil
}
