package proxy

import (
	"context"
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

// pageSize is about how long one frame of the feed may be. A set that is larger
// comes in several, so that a slow reader holds one page and not the set.
const pageSize = 48 << 10

// retained is how many rendered bytes of events are kept for subscribers to
// read and to resume from.
const retained = 32 << 20

// change is one event of the table's feed, rendered once for all subscribers.
type change struct {
	seq   uint64
	owner table.Principal
	pages [][]byte // frame bodies, in order; shared
	bytes int
	upTo  uint64 // bytes of all events up to and with this one
}

// changes is the rendered tail of the table's feed. Rendering is off the table's
// lock and on no session's thread: it costs a sync nothing.
type changes struct {
	mu     sync.Mutex
	list   []change // by seq, without gaps
	bytes  int
	newest uint64 // seq, also when list is empty
	total  uint64 // bytes ever
	subs   map[ConnID]struct{}
}

// at returns the event after seq. It is missing when there is none yet, and
// gone when it is no longer kept.
func (c *changes) at(seq uint64) (e change, missing, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq >= c.newest {
		return change{}, true, false
	}
	if len(c.list) == 0 || seq+1 < c.list[0].seq {
		return change{}, false, true
	}
	return c.list[seq+1-c.list[0].seq], false, false
}

// bounds are the cursors' seqs between which a subscriber may resume, and the
// bytes ever rendered.
func (c *changes) bounds() (oldest, newest, total uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest = c.newest
	if len(c.list) > 0 {
		oldest = c.list[0].seq - 1
	}
	return oldest, c.newest, c.total
}

func (c *changes) subscribe(id ConnID, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		if c.subs == nil {
			c.subs = make(map[ConnID]struct{})
		}
		c.subs[id] = struct{}{}
	} else {
		delete(c.subs, id)
	}
}

// add appends rendered events, forgets the oldest past the bound, and returns
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
	drop := 0
	for c.bytes > retained && drop < len(c.list)-1 || len(c.list)-drop > maxRetained {
		c.bytes -= c.list[drop].bytes
		drop++
	}
	if drop > 0 {
		c.list = append([]change(nil), c.list[drop:]...)
	}
	ids := make([]ConnID, 0, len(c.subs))
	for id := range c.subs {
		ids = append(ids, id)
	}
	return ids
}

// maxRetained is how many events are kept at most, as the router's spawn feed
// keeps its own.
const maxRetained = 4096

// skip follows a table whose ring ran past the reader: what was not rendered
// can't be, so nobody may resume from before it.
func (c *changes) skip(to uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.bytes, c.newest = nil, 0, to
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
		_, newest, _ := w.changes.bounds()
		events, ok := w.Table.Events(newest, buf)
		if !ok {
			_, last := w.Table.FeedBounds()
			w.changes.skip(last)
			w.tell(w.changes.add(nil))
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
		c.pages = pagesOf(e.Scopes, func(scopes []table.Stamp, more bool) any {
			return setPage{Cursor: at, Kind: e.Kind.String(), Owner: &e.Owner, Scopes: scopes, More: more}
		})
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
// an owner's first sync. The set is whole at the page that has no more.
type setPage struct {
	Cursor cursor            `json:"cursor"`
	Kind   string            `json:"kind"` // snapshot, synced
	Owner  *table.Principal  `json:"owner,omitzero"`
	Synced []table.Principal `json:"owners_synced,omitempty"` // snapshot: on its first page
	Scopes []table.Stamp     `json:"scopes"`
	More   bool              `json:"more,omitzero"`
}

// pagesOf renders a set in pages of about pageSize. An empty set is one page.
func pagesOf(scopes []table.Scope, page func([]table.Stamp, bool) any) [][]byte {
	var pages [][]byte
	rest := scopes
	for {
		var stamps []table.Stamp
		stamps, rest = cutPage(rest)
		pages = append(pages, wire.MustMarshal(page(stamps, len(rest) > 0)))
		if len(rest) == 0 {
			return pages
		}
	}
}

// cutPage takes the stamps of one page off a set.
func cutPage(scopes []table.Scope) (page []table.Stamp, rest []table.Scope) {
	page = []table.Stamp{}
	for size := 0; len(scopes) > 0 && size < pageSize; scopes = scopes[1:] {
		s := scopes[0].Stamp()
		page = append(page, s)
		size += 160 + len(s.Ref) + attributesLen(s)
	}
	return page, scopes
}

func attributesLen(s table.Stamp) int {
	n := 0
	for _, a := range []*string{s.Attributes.AgentID, s.Attributes.FlowID, s.Attributes.RunID} {
		if a != nil {
			n += len(*a)
		}
	}
	return n
}
