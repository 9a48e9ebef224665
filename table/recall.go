package table

import (
	"hash/maphash"
	"sync"
)

// recall is an owner's last accepted full set as it came. A set that is sent again
// is mostly the bytes of the last one, and those need no second decoding. What
// decoding makes of a record depends on its bytes alone, so the same bytes are the
// same record.
type recall struct {
	mu  sync.Mutex
	set *recalled // never nil once one was kept
}

// recalled is a set. It is never changed, but for its index by bytes, which is made
// when it is first asked for.
type recalled struct {
	records []recalledRecord // in the order in which they came
	index   refs             // of records
	bytes   func() byBytes
}

// recalledRecord is a record's bytes and what decoding made of them.
type recalledRecord struct {
	raw            string
	record         *Record
	live           *scope // under its ref after that call, nil for none
	onlyIfIdle     bool
	targetsInvalid bool
}

func (r *recalledRecord) entry() entry {
	return entry{
		raw: r.raw, recalled: true, record: r.record, last: r.live,
		onlyIfIdle: r.onlyIfIdle, targetsInvalid: r.targetsInvalid, contradiction: r.record.Attributes.contradiction(),
	}
}

// byBytes finds records by a hash of their bytes. Whoever asks compares the bytes.
type byBytes struct {
	seed maphash.Seed
	at   map[uint64]int
}

func (r *recall) known() *recalled {
	if r == nil {
		return &recalled{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set == nil {
		r.set = &recalled{}
	}
	return r.set
}

// keep keeps an accepted call's set, unless it is the one that is kept.
func (r *recall) keep(c *call) {
	if r == nil || c.resent {
		return
	}
	set := &recalled{records: make([]recalledRecord, len(c.entries)), index: c.index}
	for i := range c.entries {
		e := &c.entries[i]
		set.records[i] = recalledRecord{e.raw, e.record, e.now, e.onlyIfIdle, e.targetsInvalid}
	}
	set.bytes = sync.OnceValue(set.hash)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = set
}

func (s *recalled) hash() byBytes {
	b := byBytes{seed: maphash.MakeSeed(), at: make(map[uint64]int, len(s.records))}
	for i := range s.records {
		b.at[maphash.String(b.seed, s.records[i].raw)] = i
	}
	return b
}

// find finds the record that came as raw, -1 for none.
func (s *recalled) find(raw string) int {
	if len(s.records) == 0 {
		return -1
	}
	b := s.bytes()
	if i, found := b.at[maphash.String(b.seed, raw)]; found && s.records[i].raw == raw {
		return i
	}
	return -1
}
