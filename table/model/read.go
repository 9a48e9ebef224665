package model

import (
	"fmt"
	"slices"
	"strings"
)

// Describe is scope.describe (section 5), on one line.
func (m *Model) Describe(id, ref string) string {
	o := m.owners[id]
	if sc, live := o.live[ref]; live {
		return fmt.Sprintf("live %d synced=%t %s", sc.record.Epoch, o.synced, m.stamp(id, sc))
	}
	ended, some := uint64(0), false
	for _, t := range o.tombstones {
		if t.ref == ref {
			ended, some = max(ended, t.epoch), true
		}
	}
	if some {
		return fmt.Sprintf("ended %d synced=%t", ended, o.synced)
	}
	return fmt.Sprintf("not_live synced=%t", o.synced)
}

func (m *Model) stamp(id string, sc scope) string {
	r := sc.record
	var attributes []string
	for _, name := range sortedKeys(r.Attributes) {
		attributes = append(attributes, name+"="+r.Attributes[name])
	}
	return fmt.Sprintf("%s %s %s parent=%s %s [%s] authorized=%t expires=%s", id, r.Ref, r.Kind,
		parentText(r.Parent), sc.link, strings.Join(attributes, " "), slices.Contains(m.authorized, id), text(r.Expires))
}

// Live is what an operator sees of one live scope.
type Live struct {
	Ref             string
	Version         int
	Link            string
	Record          Record
	Routes, Pending int
	Holders         int
}

// Scopes lists an owner's live scopes, by ref.
func (m *Model) Scopes(id string) []Live {
	var list []Live
	o := m.owners[id]
	for _, ref := range sortedKeys(o.live) {
		sc := o.live[ref]
		l := Live{Ref: ref, Version: sc.version, Link: sc.link, Record: sc.record, Holders: len(m.holders(sc))}
		for _, r := range m.routes {
			if r.session == sc.session && r.live {
				l.Routes++
			} else if r.session == sc.session {
				l.Pending++
			}
		}
		list = append(list, l)
	}
	return list
}

// Owner is one line about an owner: what it has synced, who has its authority,
// and its tombstones, oldest first.
func (m *Model) Owner(id string) string {
	o := m.owners[id]
	authority := "free"
	if o.authority != nil {
		authority = fmt.Sprintf("%d generation %d", o.authority.peer, o.authority.generation)
	}
	return fmt.Sprintf("synced=%t authority=%s live=%d tombstones=%d", o.synced, authority, len(o.live), len(o.tombstones))
}

// HasDeadlines says whether any live scope has a deadline.
func (m *Model) HasDeadlines() bool {
	for _, o := range m.owners {
		for _, sc := range o.live {
			if sc.record.Expires != nil {
				return true
			}
		}
	}
	return false
}

// Authority is the peer that has an owner's authority.
func (m *Model) Authority(id string) (peer int, held bool) {
	if a := m.owners[id].authority; a != nil {
		return a.peer, true
	}
	return 0, false
}

// Routes lists the routes that are live, or the binds in flight, by id.
func (m *Model) Routes(live bool) []uint64 {
	var list []uint64
	for _, id := range sortedKeys(m.routes) {
		if m.routes[id].live == live {
			list = append(list, id)
		}
	}
	return list
}

// Print is the whole state as a text, but for the numbers that versions and
// sessions have: equal texts behave alike.
func (m *Model) Print() string {
	var b strings.Builder
	for _, id := range sortedKeys(m.owners) {
		fmt.Fprintln(&b, id, m.Owner(id), m.owners[id].tombstones)
		for _, l := range m.Scopes(id) {
			fmt.Fprintln(&b, l.Record.content(), l.Link, sortedKeys(m.owners[id].live[l.Ref].present))
		}
	}
	for _, id := range sortedKeys(m.routes) {
		r := m.routes[id]
		sc, live := m.under(r)
		fmt.Fprintln(&b, id, r.owner, r.ref, r.epoch, r.opener, r.provider, r.principal, r.module, r.live, r.holding, live, live && sc.version == r.version)
	}
	fmt.Fprintln(&b, sortedKeys(m.joined))
	return b.String()
}
