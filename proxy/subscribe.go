package proxy

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/proxy/wire"
	"scopeward/table"
)

// Refusals and ends of a subscription, shaped as the router's spawn feed shapes
// its own (section 5).
const (
	codeCursorIncarnation = "scope_cursor_incarnation_mismatch"
	codeCursorTooOld      = "scope_cursor_too_old"
	codeSubscriberLagged  = "scope_subscriber_lagged"
)

// maxBacklog is how many bytes of events may be behind a subscriber that does
// not read when more come. It is then cut: it resumes, and delays nobody.
const maxBacklog = 1 << 20

// maxSubscriptions is how many a connection may hold.
const maxSubscriptions = 8

// burst is how many bytes of the feed are written before the driver is let go.
const burst = 256 << 10

// subscription is one held scope.subscribe.
type subscription struct {
	owners []table.Principal // nil: every owner's scopes
	seq    uint64            // of the last event that was written whole
	page   int               // pages of the next one that were written

	snapshot []table.Scope // what is left of it; the events begin behind
	synced   []table.Principal
	starting bool // the snapshot's last page is not written
}

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
	if s.subs[f.Corr] != nil || len(s.subs) >= maxSubscriptions {
		s.refuse(toPeer, f.Corr, wire.CodeInvalidRequest, "one subscription a corr, and at most eight a connection")
		return
	}
	u := &subscription{owners: b.Owners}
	if b.Since == nil {
		snap := s.world.Table.Snapshot()
		u.seq, u.snapshot, u.synced, u.starting = snap.Seq, snap.Scopes, snap.Synced, true
		if u.owners != nil {
			u.snapshot = nil
			for _, sc := range snap.Scopes {
				if u.wants(sc.ID.Owner) {
					u.snapshot = append(u.snapshot, sc)
				}
			}
			u.synced = slices.DeleteFunc(slices.Clone(snap.Synced), func(p table.Principal) bool { return !u.wants(p) })
		}
	} else if !s.resumeAt(f, u, *b.Since) {
		return
	}
	if s.subs == nil {
		s.subs = make(map[uint64]*subscription)
	}
	s.subs[f.Corr] = u
	s.world.changes.subscribe(s.id, true)
	s.pump()
}

// resumeAt places a subscription behind a cursor, or refuses it with where to
// begin instead.
func (s *Session) resumeAt(f held, u *subscription, since cursor) bool {
	if since.Incarnation != s.world.Incarnation {
		s.refuseWith(f.Corr, codeCursorIncarnation, "the cursor is of another incarnation: take a new snapshot",
			map[string]any{"current_daemon_incarnation": s.world.Incarnation})
		return false
	}
	oldest, _, _ := s.world.changes.bounds()
	if since.Seq < oldest {
		s.refuseWith(f.Corr, codeCursorTooOld, "the events behind the cursor are no longer kept: take a new snapshot",
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
	delete(s.subs, corr)
	if len(s.subs) == 0 {
		s.world.changes.subscribe(s.id, false)
	}
}

// changed hears that there are new events. A subscriber whose socket takes
// nothing and that is already far behind is cut.
func (s *Session) changed() {
	if s.unsent > 0 {
		_, _, total := s.world.changes.bounds()
		for corr, u := range s.subs {
			e, missing, gone := s.world.changes.at(u.seq)
			if gone || !missing && total-e.upTo > maxBacklog {
				s.lag(corr, u)
			}
		}
		return
	}
	s.pump()
}

// lag ends a subscription with the cursor of the first event that it was not
// sent.
func (s *Session) lag(corr uint64, u *subscription) {
	s.endSubscription(corr)
	s.refuseWith(corr, codeSubscriberLagged, "this subscriber is too far behind: subscribe again since the last cursor it got",
		map[string]any{"first_undelivered_cursor": s.cursor(u.seq + 1)})
}

// pump writes what subscribers have not been sent, a burst at a time.
func (s *Session) pump() {
	s.behind = false
	for corr, u := range s.subs {
		for room := burst; room > 0; {
			body, ok := s.nextPage(corr, u)
			if !ok {
				break
			}
			room -= len(body)
			s.write(toPeer, wire.AppendFrame(nil, wire.Header{Type: wire.StreamData, Corr: corr}, body))
			s.behind = s.behind || room <= 0
		}
	}
}

// nextPage returns the next frame's body of a subscription, false when it is
// sent all there is.
func (s *Session) nextPage(corr uint64, u *subscription) ([]byte, bool) {
	if u.starting {
		page, rest := cutPage(u.snapshot)
		body := wire.MustMarshal(setPage{Cursor: s.cursor(u.seq), Kind: "snapshot", Synced: u.synced, Scopes: page, More: len(rest) > 0})
		u.snapshot, u.synced, u.starting = rest, nil, len(rest) > 0
		return body, true
	}
	for {
		e, missing, gone := s.world.changes.at(u.seq)
		switch {
		case missing:
			return nil, false
		case gone:
			s.lag(corr, u)
			return nil, false
		case !u.wants(e.owner):
			u.seq = e.seq
			continue
		}
		body := e.pages[u.page]
		if u.page++; u.page == len(e.pages) {
			u.seq, u.page = e.seq, 0
		}
		return body, true
	}
}

// Unsent tells the session how much of what it wrote to the peer is still with
// its driver. When nothing is, what waited for room goes on.
func (s *Session) Unsent(n int) {
	was := s.unsent
	s.unsent = n
	if n == 0 && (was > 0 || s.behind) && !s.ended {
		s.pump()
	}
}
