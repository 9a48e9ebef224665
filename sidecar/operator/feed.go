package operator

import (
	"fmt"
	"slices"
	"time"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// The kinds of events that tell what became of scopes: the change feed that
// providers follow with scope.subscribe (section 5).
const (
	kindScopeCreated = "scope_created"
	kindScopeEnded   = "scope_ended"
	kindScopeChanged = "scope_changed"
	kindOwnerSynced  = "owner_synced" // an owner's first sync in this incarnation
)

// feedKinds are the kinds by what the feed calls them.
func feedKinds() map[table.EventKind]string {
	return map[table.EventKind]string{
		table.EventCreated: kindScopeCreated, table.EventEnded: kindScopeEnded,
		table.EventChanged: kindScopeChanged, table.EventSynced: kindOwnerSynced,
	}
}

// worldEvery is how often a reader of the feed looks whether the router came back
// and began a new incarnation.
const worldEvery = time.Second

// feedReader follows the change feed for one reader of the event stream, at that
// reader's pace: nothing waits for it, and nothing is kept for it.
type feedReader struct {
	proxy   Proxy
	journal *Journal
	kinds   map[table.EventKind]string // those that are wanted
	world   *proxy.World
	seq     uint64 // of the last event that was told
	buf     [256]table.Event
}

// newFeedReader begins behind what has happened. It is nil when none of kinds is
// the feed's; kinds of nil are all.
func newFeedReader(p Proxy, j *Journal, kinds []string) *feedReader {
	f := &feedReader{proxy: p, journal: j, kinds: feedKinds()}
	for k, name := range f.kinds {
		if kinds != nil && !slices.Contains(kinds, name) {
			delete(f.kinds, k)
		}
	}
	if len(f.kinds) == 0 {
		return nil
	}
	if f.world = p.World(); f.world != nil {
		_, f.seq = f.world.Table.FeedBounds()
	}
	return f
}

// woken is closed when there is something to tell. A new incarnation is told from
// its beginning.
func (f *feedReader) woken() <-chan struct{} {
	if f == nil {
		return nil
	}
	if w := f.proxy.World(); w != f.world {
		f.world, f.seq = w, 0
	}
	if f.world == nil {
		return nil
	}
	woken := f.world.Table.Wake()
	if _, newest := f.world.Table.FeedBounds(); newest > f.seq {
		done := make(chan struct{})
		close(done)
		return done
	}
	return woken
}

// tell appends some of the events that are new. It is false when the feed no
// longer has them: the reader begins anew.
func (f *feedReader) tell(b []byte) ([]byte, bool) {
	events, ok := f.world.Table.Events(f.seq, f.buf[:])
	if !ok {
		return b, false
	}
	now := time.Now().UnixMilli()
	for _, e := range events {
		f.seq = e.Seq
		if kind, wanted := f.kinds[e.Kind]; wanted {
			b = appendEvent(b, f.event(kind, e, now))
		}
	}
	return b, true
}

func (f *feedReader) event(kind string, e table.Event, now int64) *api.Event {
	out := &api.Event{Seq: f.journal.seq.Add(1), AtMS: now, Kind: kind, Owner: principalText(e.Owner), Rule: "5 scope.subscribe"}
	if e.Kind == table.EventSynced {
		out.Message = fmt.Sprintf("%d scopes are live", len(e.Scopes))
		return out
	}
	epoch := e.Scope.ID.Epoch
	out.Ref, out.ScopeEpoch = e.Scope.ID.Ref, &epoch
	if e.Kind != table.EventEnded {
		out.Digest = e.Scope.Record.Digest().String()
	}
	return out
}
