package model_test

import (
	"fmt"
	"slices"
	"strings"

	"scopeward/table"
)

// reader follows the change feed as a provider would (section 5, subscribe): a
// snapshot when it has fallen behind, events otherwise.
type reader struct {
	seq    uint64
	synced []string
	scopes map[table.ScopeID]string
}

// follow reads on and wants what the reader knows to be what is live. child_owners,
// the proof's hash and the version are no news to a reader.
func (r *reader) follow(p *pair) {
	p.t.Helper()
	if r.scopes == nil {
		r.scopes = map[table.ScopeID]string{}
	}
	for {
		events, ok := p.real.Events(r.seq, make([]table.Event, 7))
		if !ok {
			r.restart(p.real.Snapshot())
			break
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			p.same(r.seq+1, e.Seq, "the event's number")
			r.seq = e.Seq
			r.read(p, e)
		}
	}
	var want []string
	for _, id := range owners {
		for _, s := range p.real.Scopes(id) {
			want = append(want, s.ID.String()+" "+newsText(s.Scope))
		}
	}
	var got []string
	for id, news := range r.scopes {
		got = append(got, id.String()+" "+news)
	}
	slices.Sort(want)
	slices.Sort(got)
	p.same(want, got, "what a reader of the feed knows to be live")
}

func (r *reader) restart(s *table.Snapshot) {
	r.seq, r.scopes, r.synced = s.Seq, map[table.ScopeID]string{}, nil
	for _, o := range s.Synced {
		r.synced = append(r.synced, o.ModuleID)
	}
	for _, sc := range s.Scopes {
		r.scopes[sc.ID] = newsText(sc)
	}
}

func (r *reader) read(p *pair, e table.Event) {
	p.t.Helper()
	_, held := r.scopes[e.Scope.ID]
	switch e.Kind {
	case table.EventCreated:
		p.same(false, held, "created, though held")
		r.scopes[e.Scope.ID] = newsText(e.Scope)
	case table.EventEnded:
		p.same(true, held, "ended, though not held")
		delete(r.scopes, e.Scope.ID)
	case table.EventChanged:
		p.same(true, held, "changed, though not held")
		p.same(false, r.scopes[e.Scope.ID] == newsText(e.Scope), "changed, though nothing of it is news")
		r.scopes[e.Scope.ID] = newsText(e.Scope)
	case table.EventSynced:
		p.same(false, slices.Contains(r.synced, e.Owner.ModuleID), "synced for the second time")
		r.synced = append(r.synced, e.Owner.ModuleID)
		for _, sc := range e.Scopes {
			r.scopes[sc.ID] = newsText(sc)
		}
	}
}

// newsText is what of a scope makes a changed event.
func newsText(s table.Scope) string {
	var carriers []string
	for _, c := range s.Record.Carriers.Sorted() {
		carriers = append(carriers, fmt.Sprint(c.Principal, c.Targeted, c.Targets.Sorted()))
	}
	parent := "none"
	if s.Record.Parent != nil {
		parent = s.Record.Parent.String()
	}
	return fmt.Sprintf("%s [%s] %s %s", strings.Join(carriers, " "), attributeText(s.Record.Attributes), parent, s.ParentState)
}
