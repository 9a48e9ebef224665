package ledger

import (
	"go.etcd.io/bbolt"

	"scopeward/table"
)

// MaxEnds is how many ends are remembered for an owner, on disk and, with
// tombstones on, in memory (about 150 bytes each and the ref). The oldest is
// forgotten first, and nothing is ever refused for it. The contract's bound for a
// table's own is [table.MaxTombstones].
const MaxEnds = 100_000

// remembered are the ends that outlive a table, in memory.
type remembered struct {
	limit  int
	owners map[table.Principal]*ownerEnds
}

type ownerEnds struct {
	causes map[session]table.Cause
	order  []session // oldest first
}

type session struct {
	ref   string
	epoch uint64
}

// loadRemembered reads the ends of a file.
func loadRemembered(tx *bbolt.Tx, limit int) (*remembered, error) {
	r := &remembered{limit: limit, owners: map[table.Principal]*ownerEnds{}}
	ends := tx.Bucket(bucketEnds)
	return r, ends.ForEachBucket(func(owner []byte) error {
		return ends.Bucket(owner).ForEach(func(_, v []byte) error {
			end, ok := parseEnd(v)
			if !ok {
				return ErrNotLedger
			}
			r.add(end.ID, end.Cause)
			return nil
		})
	})
}

func (r *remembered) cause(id table.ScopeID) (table.Cause, bool) {
	o := r.owners[id.Owner]
	if o == nil {
		return 0, false
	}
	c, found := o.causes[session{id.Ref, id.Epoch}]
	return c, found
}

func (r *remembered) add(id table.ScopeID, c table.Cause) {
	o := r.owners[id.Owner]
	if o == nil {
		o = &ownerEnds{causes: map[session]table.Cause{}}
		r.owners[id.Owner] = o
	}
	at := session{id.Ref, id.Epoch}
	if _, found := o.causes[at]; found {
		return
	}
	o.causes[at] = c
	o.order = append(o.order, at)
	for len(o.order) > r.limit {
		delete(o.causes, o.order[0])
		o.order[0] = session{}
		o.order = o.order[1:] // append moves the rest when it needs room
	}
}
