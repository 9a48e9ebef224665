package proxy

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// maxSubscriptions is how many a connection may hold, and maxOwners how many
// owners one may name.
const (
	maxSubscriptions = 8
	maxOwners        = 256
)

// subscription is one held scope.subscribe.
type subscription struct {
	corr   uint64
	owners []table.Principal // nil: every owner's scopes
	seq    uint64            // of the last event that was written whole
	page   int               // pages of the next one that were written

	from   *table.Snapshot // nil once its last page is written; the events begin behind
	left   []table.Scope   // of from, what was not sent. Shared
	synced []table.Principal
}

// starting reports whether the snapshot's last page is not written.
func (u *subscription) starting() bool { return u.from != nil }

func (u *subscription) wants(owner table.Principal) bool {
	return u.owners == nil || slices.Contains(u.owners, owner)
}

// subscribeBody is a scope.subscribe.
type subscribeBody struct {
	Op     string            `json:"op"`
	Since  *cursor           `json:"since"`
	Owners []table.Principal `json:"owners"`
}

// subscribe takes a scope.subscribe: a snapshot, or the events since a cursor,
// and then events until Cancel, Goodbye or close.
func (s *Session) subscribe(f held) {
	var b subscribeBody
	if err := json.Unmarshal(f.body(), &b); err != nil { // unknown members are ignored, as in every scope call
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, "scope.subscribe is {since?: {daemon_incarnation, seq}, owners?: [principal]}")
		return
	}
	if len(b.Owners) > maxOwners {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidControlBody, "a subscription names at most 256 owners; one that names none has all")
		return
	}
	if s.subscription(f.Corr) != nil || len(s.subs) >= maxSubscriptions {
		s.endSubscription(f.Corr) // an Error ends whatever has its corr
		s.refuse(toPeer, f.Corr, wire.CodeInvalidRequest, "one subscription a corr, and at most eight a connection")
		return
	}
	u := &subscription{corr: f.Corr, owners: b.Owners}
	if b.Since == nil {
		l := &s.lanes[toRouter]
		if l.asked.done == nil {
			s.job(l, f, func(_ held, done func(any)) { done(s.world.Table.Snapshot()) })
			return
		}
		snap := l.asked.done.(*table.Snapshot)
		u.seq, u.from, u.left = snap.Seq, snap, snap.Scopes
		for _, p := range snap.Synced {
			if u.wants(p) {
				u.synced = append(u.synced, p)
			}
		}
	} else if !s.resumeAt(u, *b.Since) {
		return
	}
	s.subs = append(s.subs, u)
	s.world.changes.subscribe(s.id, true)
	if u.starting() {
		s.world.tell(s.world.changes.hold(u.from))
	}
	s.pump()
}

// subscription is the one with that corr, nil when there is none.
func (s *Session) subscription(corr uint64) *subscription {
	for _, u := range s.subs {
		if u.corr == corr {
			return u
		}
	}
	return nil
}

// resumeAt places a subscription behind a cursor, or refuses it as the spawn feed
// does. A cursor ahead of the newest is accepted and silent until then.
func (s *Session) resumeAt(u *subscription, since cursor) bool {
	if since.Incarnation != s.world.Incarnation {
		s.refuseWith(u.corr, wire.CodeCursorIncarnation, "the cursor is of another incarnation: take a new snapshot",
			map[string]any{"current_daemon_incarnation": s.world.Incarnation})
		return false
	}
	oldest, ok := s.world.changes.resumable(since.Seq)
	if !ok {
		s.refuseWith(u.corr, wire.CodeCursorTooOld, "the events behind the cursor are no longer kept: take a new snapshot",
			map[string]any{"oldest_retained_cursor": s.cursor(oldest)})
		return false
	}
	u.seq = since.Seq
	return true
}

func (s *Session) cursor(seq uint64) cursor { return cursor{s.world.Incarnation, seq} }

func (s *Session) refuseWith(corr uint64, code, message string, detail any) {
	s.write(toPeer, wire.AppendError(nil, wire.ControlChannel, 0, corr,
		wire.ErrorBody{Code: code, Message: message, Detail: jsontext.Value(wire.MustMarshal(detail))}))
}

// unsubscribe takes a Cancel of a subscription.
func (s *Session) unsubscribe(corr uint64) {
	s.endSubscription(corr)
	s.write(toPeer, wire.AppendFrame(nil, wire.Header{Type: wire.StreamEnd, Corr: corr}, nil))
}

func (s *Session) endSubscription(corr uint64) {
	if u := s.subscription(corr); u != nil {
		s.started(u)
		s.subs = slices.DeleteFunc(s.subs, func(other *subscription) bool { return other == u })
	}
	if len(s.subs) == 0 {
		s.subs = nil
		s.world.changes.subscribe(s.id, false)
	}
}

// started lets go of a subscription's snapshot.
func (s *Session) started(u *subscription) {
	if u.starting() {
		s.world.changes.release(u.from)
		u.from, u.left, u.synced = nil, nil, nil
	}
}

// changed hears that there are new events, or that there is room for them. A
// subscriber that takes nothing and is already far behind is cut.
func (s *Session) changed() {
	s.world.changes.looks(s.id)
	if !s.blocked() {
		s.pump()
		return
	}
	s.behind = true
	most := s.world.changes.limits.orDefault().backlog
	for _, u := range slices.Clone(s.subs) {
		if waiting, gone := s.world.changes.behind(u); gone || waiting > most || u.starting() && !s.world.changes.holds(u.from) {
			s.lag(u)
		}
	}
}

// blocked reports whether the feed waits: its driver still has bytes for the
// peer, or frames of ours wait for the router's frame under way to end.
func (s *Session) blocked() bool { return s.unsent > 0 || s.outs[toPeer].waiting() }

// lag ends a subscription with the cursor of the first event that it was not
// sent whole. Of a snapshot that is its own: there is nothing to resume from.
func (s *Session) lag(u *subscription) {
	first := u.seq + 1
	if u.starting() {
		first = u.seq
	}
	s.endSubscription(u.corr)
	s.refuseWith(u.corr, wire.CodeSubscriberLagged,
		"this subscriber is too far behind: subscribe again since the last cursor it got, or without one when it got none",
		map[string]any{"first_undelivered_cursor": s.cursor(first)})
}

// pump writes what subscribers have not been sent, one burst, a page of each in
// turn.
func (s *Session) pump() {
	s.behind = s.blocked()
	if s.behind {
		return
	}
	b, most := batch{s: s}, s.world.changes.limits.orDefault().burst
	for i, idle := 0, 0; idle < len(s.subs); i++ {
		if b.written >= most {
			s.behind = true
			break
		}
		u := s.subs[i%len(s.subs)]
		body, gone := s.nextPage(u)
		switch {
		case gone:
			b.flush()
			s.lag(u)
		case body == nil:
			idle++
		default:
			idle = 0
			b.add(u.corr, body)
		}
	}
	b.flush()
}

// nextPage returns the next frame's body of a subscription, nil when it was sent
// all there is. It is gone when that is no longer kept.
func (s *Session) nextPage(u *subscription) (body []byte, gone bool) {
	if u.starting() {
		if !s.world.changes.holds(u.from) {
			return nil, true
		}
		p := setPage{Kind: "snapshot", Synced: u.synced}
		var scopes []byte
		scopes, u.left = cutPage(u.left, u.wants, s.world.changes.limits.orDefault().page)
		u.synced = nil
		if p.More = len(u.left) > 0; !p.More {
			s.started(u)
		}
		return p.render(s.cursor(u.seq), scopes), false
	}
	for {
		e, missing, gone := s.world.changes.at(u.seq)
		switch {
		case missing, gone:
			return nil, gone
		case !u.wants(e.owner):
			u.seq = e.seq
			continue
		}
		body := e.pages[u.page]
		if u.page++; u.page == len(e.pages) {
			u.seq, u.page = e.seq, 0
		}
		return body, false
	}
}

// batch gathers frames of the feed, so that many small ones are one write. A
// large body is written as it is: all subscribers share it.
type batch struct {
	s       *Session
	buf     []byte
	written int
}

// largeBody is the length in bytes from which a body is not copied.
const largeBody = 8 << 10

func (b *batch) add(corr uint64, body []byte) {
	h := wire.Header{Type: wire.StreamData, Corr: corr}
	b.written += wire.HeaderLen + len(body)
	if len(body) < largeBody {
		b.buf = wire.AppendFrame(b.buf, h, body)
		return
	}
	h.Len = uint32(len(body))
	b.buf = h.Append(b.buf)
	b.flush()
	b.s.write(toPeer, body)
}

func (b *batch) flush() {
	if len(b.buf) > 0 {
		b.s.write(toPeer, b.buf)
		b.buf = nil
	}
}

// Unsent tells the session how much of what it wrote to the peer is still with
// its driver, and reports whether subscriptions go on: the driver hands it a feed
// event when it has nothing better to do.
func (s *Session) Unsent(n int) (more bool) {
	s.unsent = n
	more = s.behind && !s.blocked() && !s.ended
	if more {
		s.behind = false
	}
	return more
}
