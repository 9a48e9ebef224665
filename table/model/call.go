package model

import (
	"fmt"
	"slices"
)

// Claim is who a call comes from.
type Claim struct {
	Peer    int
	Owner   string
	Launch  int
	Current bool // the launch is the owner's current one
}

// Reply is what an accepted call did.
type Reply struct {
	Results []Result
	Ends    []bool // ended, or not_live
	Ended   []End
	Drains  []Drain
	Expired []Expiry
	// Stored is every content that the call's records gave to the table.
	Stored []End
}

// Result is what became of one record.
type Result struct {
	Outcome string // created, replaced, updated, unchanged, or a refusal's code
	Version int    // of what is live under the ref afterwards, 0 for nothing
	Link    string
}

// Drain is one live route that closes.
type Drain struct {
	Route  uint64
	Reason string
}

// Expiry is one session that its deadline ended.
type Expiry struct {
	Owner  string
	End    End
	Routes int
}

// Sync is scope.sync (section 3). The code is "" for an accepted call.
func (m *Model) Sync(c Claim, generation uint64, records []Record, now int64) (Reply, string) {
	return m.change(c, generation, records, nil, true, now)
}

// Apply is scope.apply.
func (m *Model) Apply(c Claim, generation uint64, upsert []Record, ends []End, now int64) (Reply, string) {
	return m.change(c, generation, upsert, ends, false, now)
}

func (m *Model) change(c Claim, generation uint64, records []Record, ends []End, full bool, now int64) (Reply, string) {
	after := m.state.copy()
	o := after.owners[c.Owner]
	if o.live == nil {
		o.live = map[string]scope{}
	}

	// The whole call, in section 3's order.
	taking := o.authority == nil || o.authority.peer != c.Peer
	switch {
	case !c.Current || !after.joined[c.Peer]:
		return Reply{}, "scope_sync_not_authority"
	case taking && o.authority != nil && o.authority.launch == c.Launch:
		return Reply{}, "scope_sync_not_authority"
	case taking && !full:
		return Reply{}, "scope_sync_required"
	case !taking && generation <= o.authority.generation:
		return Reply{}, "scope_sync_stale"
	}
	if code := judgeBody(records, ends); code != "" {
		return Reply{}, code
	}

	var reply Reply
	reply.Expired = m.sweepOwner(after, c.Owner, &o, now)
	for _, e := range reply.Expired {
		reply.Ended = append(reply.Ended, e.End)
	}

	// The set as it will stand: held scopes after the sweep, minus matching ends
	// (or minus all that a full sync omits), plus accepted records.
	next := map[string]Record{}
	if !full {
		for ref, sc := range o.live {
			next[ref] = sc.record
		}
	}
	for _, e := range ends {
		held, isHeld := o.live[e.Ref]
		hit := isHeld && held.record.Epoch == e.Epoch
		reply.Ends = append(reply.Ends, hit)
		if hit {
			delete(next, e.Ref)
		}
	}
	refused := make([]string, len(records))
	for i, r := range records {
		held, isHeld := o.live[r.Ref]
		refused[i] = m.judgeRecord(after, c.Owner, o, r, now, isHeld && after.inUse(held))
		if refused[i] == "" {
			next[r.Ref] = r
		} else if isHeld {
			next[r.Ref] = held.record
		}
	}
	links := after.judgeLinks(c.Owner, o, records, refused, next)
	if len(next) > m.limits.LiveScopes {
		return Reply{}, "scope_live_limit_exceeded"
	}

	// It stands. What was live and is not, at its epoch, has ended.
	before := o.live
	for _, ref := range sortedKeys(before) {
		held := before[ref]
		if r, stays := next[ref]; !stays || r.Epoch != held.record.Epoch {
			m.bury(after, c.Owner, &o, held.record, "owner_ended")
			reply.Ended = append(reply.Ended, End{ref, held.record.Epoch})
		}
	}
	o.live = map[string]scope{}
	for ref, r := range next {
		sc, isHeld := before[ref]
		if !isHeld || sc.record.Epoch != r.Epoch {
			after.sessions++
			sc = scope{session: after.sessions, present: map[int]bool{}}
		}
		sc.record = r
		if link, isNew := links[ref]; isNew {
			sc.link = link
		}
		if r.Parent == nil {
			sc.link = ""
		}
		o.live[ref] = sc
	}
	o.synced = true
	o.authority = &authority{peer: c.Peer, launch: c.Launch, generation: generation}
	after.owners[c.Owner] = o
	reply.Drains = m.settle(after)

	for i, r := range records {
		held, wasHeld := before[r.Ref]
		now := m.owners[c.Owner].live[r.Ref]
		res := Result{Version: now.version, Link: now.link}
		switch {
		case refused[i] != "":
			res.Outcome = refused[i]
		case !wasHeld:
			res.Outcome = "created"
		case held.record.Epoch != r.Epoch:
			res.Outcome = "replaced"
		case held.version == now.version:
			res.Outcome = "unchanged"
		default:
			res.Outcome = "updated"
		}
		reply.Results = append(reply.Results, res)
		if refused[i] == "" && (!wasHeld || held.record.content() != r.content()) {
			reply.Stored = append(reply.Stored, End{r.Ref, r.Epoch})
		}
	}
	return reply, ""
}

// bury leaves a tombstone and forgets the oldest past the bound (section 2).
func (m *Model) bury(s state, id string, o *owner, r Record, cause string) {
	s.ended[name(id, r.Ref, r.Epoch)] = cause
	o.tombstones = append(o.tombstones, tombstone{r.Ref, r.Epoch, cause})
	if extra := len(o.tombstones) - m.limits.Tombstones; extra > 0 {
		o.tombstones = slices.Clone(o.tombstones[extra:])
	}
}

func name(id, ref string, epoch uint64) string { return fmt.Sprintf("%s/%s@%d", id, ref, epoch) }
