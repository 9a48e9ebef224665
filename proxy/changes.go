package proxy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// cursor is a place in the change feed: a subscriber copies it from what it was
// sent and gives it back in since. A new incarnation makes every older one void.
type cursor struct {
	Incarnation string `json:"daemon_incarnation"`
	Seq         uint64 `json:"seq"`
}

// feedLimits bound the feed in bytes, and in events.
type feedLimits struct {
	// page is about how long one frame of a set may be: a slow reader holds one
	// page and not the set.
	page int
	// burst is about how much is written to one connection at once, all its
	// subscriptions together. It is well under what a peer may leave unread before
	// its own requests are no longer read.
	burst int
	// backlog is how much may be behind a subscriber that does not read when more
	// comes. It is then cut: it resumes, and delays nobody.
	backlog uint64
	// bytes and events are what is kept for subscribers to read and to resume from.
	// One call may end and create ten thousand scopes each, and a subscriber that
	// keeps up must not be cut for it: hence more events than the spawn feed's 4096.
	bytes, events int
	// scopes is how many the snapshots under way may hold in all. Subscribers that
	// come between the same two events share one, so only slow readers of old ones
	// take room: past the bound those of the oldest are cut.
	scopes int
}

func (l feedLimits) orDefault() feedLimits {
	if l == (feedLimits{}) {
		return feedLimits{page: 48 << 10, burst: 64 << 10, backlog: 1 << 20, bytes: 32 << 20, events: table.MaxEvents, scopes: 1 << 20}
	}
	return l
}

// change is one event of the table's feed, rendered once for all subscribers.
type change struct {
	seq   uint64
	owner table.Principal
	pages [][]byte // frame bodies, in order; shared
	bytes int
	upTo  uint64 // bytes of all events up to and with this one
}

// changes is the rendered tail of the table's feed. Rendering is off the table's
// lock and on no session's thread.
type changes struct {
	limits feedLimits // zero: the defaults. Not changed once it is used

	mu     sync.Mutex
	list   []change // by seq, without gaps
	bytes  int
	newest uint64 // seq, also when list is empty
	total  uint64 // bytes ever
	// subs are the connections that have subscriptions. One that has been told
	// of events and has not looked since is not told again.
	subs map[ConnID]bool
	// sending counts the readers of each snapshot that is being sent.
	sending map[*table.Snapshot]int
}

// at returns the event after seq. It is missing when there is none yet, and
// gone when it is no longer kept.
func (c *changes) at(seq uint64) (e change, missing, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.atLocked(seq)
}

func (c *changes) atLocked(seq uint64) (e change, missing, gone bool) {
	if seq >= c.newest {
		return change{}, true, false
	}
	if len(c.list) == 0 || seq+1 < c.list[0].seq {
		return change{}, false, true
	}
	return c.list[seq+1-c.list[0].seq], false, false
}

// resumable reports whether every event after seq is kept or still to come. If
// not it names the oldest event that is kept, or the newest ever when none is.
func (c *changes) resumable(seq uint64) (oldest uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest = c.newest
	if len(c.list) > 0 {
		oldest = c.list[0].seq
	}
	_, _, gone := c.atLocked(seq)
	return oldest, !gone
}

// behind is how many bytes of events wait for a subscription, beside the one that
// it is to be sent next.
func (c *changes) behind(u *subscription) (waiting uint64, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, missing, gone := c.atLocked(u.seq)
	switch {
	case missing, gone:
		return 0, gone
	case u.owners == nil:
		return c.total - next.upTo, false
	}
	first := true
	for _, e := range c.list[next.seq-c.list[0].seq:] {
		if u.wants(e.owner) {
			if !first {
				waiting += uint64(e.bytes)
			}
			first = false
		}
	}
	return waiting, false
}

func (c *changes) newestSeq() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

func (c *changes) subscribe(id ConnID, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !on {
		delete(c.subs, id)
		return
	}
	if c.subs == nil {
		c.subs = make(map[ConnID]bool)
	}
	if _, there := c.subs[id]; !there {
		c.subs[id] = false
	}
}

// looks says that a connection looks for events now.
func (c *changes) looks(id ConnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs[id] {
		c.subs[id] = false
	}
}

// add appends rendered events, forgets the oldest past the bounds, and returns
// who is to be told.
func (c *changes) add(events []change) []ConnID {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.total += uint64(e.bytes)
		e.upTo = c.total
		c.bytes += e.bytes
		c.newest = e.seq
		c.list = append(c.list, e)
	}
	drop, most := 0, c.limits.orDefault()
	for c.bytes > most.bytes && drop < len(c.list)-1 || len(c.list)-drop > most.events {
		c.bytes -= c.list[drop].bytes
		drop++
	}
	clear(c.list[:drop]) // the array lives on for a while, its pages don't
	c.list = c.list[drop:]
	return c.toTellLocked()
}

func (c *changes) toTellLocked() []ConnID {
	ids := make([]ConnID, 0, len(c.subs))
	for id, told := range c.subs {
		if !told {
			c.subs[id] = true
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// hold notes one more reader of a snapshot, and returns who is to be told that
// older ones were given up.
func (c *changes) hold(snap *table.Snapshot) []ConnID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending == nil {
		c.sending = make(map[*table.Snapshot]int)
	}
	c.sending[snap]++
	if c.sending[snap] > 1 {
		return nil
	}
	held := 0
	for s := range c.sending {
		held += len(s.Scopes)
	}
	most := c.limits.orDefault().scopes
	if held <= most {
		return nil
	}
	byAge := slices.SortedFunc(maps.Keys(c.sending), func(a, b *table.Snapshot) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, s := range byAge {
		if held <= most || s == snap {
			break
		}
		held -= len(s.Scopes)
		delete(c.sending, s)
	}
	return c.toTellLocked()
}

// holds reports whether a snapshot was not given up.
func (c *changes) holds(snap *table.Snapshot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sending[snap] > 0
}

// release notes that a reader is done with a snapshot.
func (c *changes) release(snap *table.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending[snap]--; c.sending[snap] <= 0 {
		delete(c.sending, snap)
	}
}

// skip follows a table whose ring ran past the reader: what was not rendered
// can't be, so nobody may resume from before it. It returns who is to be told.
func (c *changes) skip(to uint64) []ConnID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.bytes, c.newest = nil, 0, to
	return c.toTellLocked()
}

// follow renders the table's events as they come and tells the subscribers,
// until ctx ends.
func (w *World) follow(ctx context.Context) {
	for {
		woken := w.Table.Wake()
		w.render()
		select {
		case <-ctx.Done():
			return
		case <-woken:
		}
	}
}

// render renders what the table's feed has that is not rendered yet.
func (w *World) render() {
	buf := make([]table.Event, 256)
	for {
		events, ok := w.Table.Events(w.changes.newestSeq(), buf)
		if !ok {
			_, last := w.Table.FeedBounds()
			w.tell(w.changes.skip(last))
			continue
		}
		if len(events) == 0 {
			return
		}
		rendered := make([]change, len(events))
		for i, e := range events {
			rendered[i] = w.renderEvent(e)
		}
		w.tell(w.changes.add(rendered))
		w.Table.Forget(events[len(events)-1].Seq)
	}
}

func (w *World) tell(ids []ConnID) {
	for _, id := range ids {
		w.post(id, feedEvent{})
	}
}

func (w *World) renderEvent(e table.Event) change {
	c := change{seq: e.Seq, owner: e.Owner}
	at := cursor{w.Incarnation, e.Seq}
	if e.Kind == table.EventSynced {
		for more, rest := true, e.Scopes; more; {
			p := setPage{Kind: e.Kind.String(), Owner: &e.Owner}
			var scopes []byte
			scopes, rest = cutPage(rest, everyOwner, w.changes.limits.orDefault().page)
			p.More = len(rest) > 0
			c.pages, more = append(c.pages, p.render(at, scopes)), p.More
		}
	} else {
		body := oneScope{Cursor: at, Kind: e.Kind.String(), Owner: e.Owner, Ref: e.Scope.ID.Ref, Epoch: e.Scope.ID.Epoch}
		if e.Kind != table.EventEnded {
			stamp := e.Scope.Stamp()
			body.Scope = &stamp
		}
		c.pages = [][]byte{wire.MustMarshal(body)}
	}
	for _, p := range c.pages {
		c.bytes += len(p)
	}
	return c
}

// oneScope is an event about one scope. The scope is as after the event; an
// ended one has none.
type oneScope struct {
	Cursor cursor          `json:"cursor"`
	Kind   string          `json:"kind"` // created, ended, changed
	Owner  table.Principal `json:"owner"`
	Ref    string          `json:"ref"`
	Epoch  uint64          `json:"scope_epoch"`
	Scope  *table.Stamp    `json:"scope,omitzero"`
}

// setPage is a page of a set: of the snapshot that begins a subscription, or of
// an owner's first sync. The set is whole at the page that has no more, and only
// that page has a cursor: there is nothing to resume from inside a set.
type setPage struct {
	Cursor *cursor           `json:"cursor,omitzero"`
	Kind   string            `json:"kind"` // snapshot, synced
	Owner  *table.Principal  `json:"owner,omitzero"`
	Synced []table.Principal `json:"owners_synced,omitempty"` // snapshot: on its first page
	More   bool              `json:"more,omitzero"`
}

// render renders the page with its scopes. at is the cursor of the whole set.
func (p setPage) render(at cursor, scopes []byte) []byte {
	if !p.More {
		p.Cursor = &at
	}
	rest := wire.MustMarshal(p)
	b := make([]byte, 0, len(rest)+len(scopes)+len(`,"scopes":`))
	b = append(append(b, rest[:len(rest)-1]...), `,"scopes":`...)
	return append(append(b, scopes...), '}')
}

// cutPage takes one page off a set, of the scopes that wants takes, and renders it
// as a list. What is left begins with one of those.
func cutPage(scopes []table.Scope, wants func(table.Principal) bool, bytes int) (page []byte, rest []table.Scope) {
	page = []byte{'['}
	for ; len(scopes) > 0; scopes = scopes[1:] {
		if !wants(scopes[0].ID.Owner) {
			continue
		}
		if len(page) > bytes {
			break
		}
		if len(page) > 1 {
			page = append(page, ',')
		}
		page = scopes[0].Stamp().AppendJSON(page)
	}
	return append(page, ']'), scopes
}

func everyOwner(table.Principal) bool { return true }
