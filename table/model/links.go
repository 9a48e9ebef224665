package model

import (
	"slices"
	"strings"
)

// judgeLinks checks the links that are new: of a new record, a new epoch, or to
// another parent (section 11). It refuses records by themselves, puts what was
// held back into next, and returns the state of each accepted new link.
//
// A refusal is final and moves what others point at, so the children of a refused
// record are looked at again, after all that still wait. Cycles come last, the
// first by request order: this is the router's order, the contract has none.
func (s state) judgeLinks(id string, o owner, records []Record, refused []string, next map[string]Record) map[string]string {
	links := map[string]string{}
	var waiting []int
	for i := range records {
		waiting = append(waiting, i)
	}
	for {
		bad := -1
		for len(waiting) > 0 && bad < 0 {
			i := waiting[0]
			waiting = waiting[1:]
			if refused[i] != "" || !isNewLink(o, records[i]) {
				continue
			}
			link, permitted := s.checkLink(id, *records[i].Parent, next)
			if !permitted {
				bad = i
			} else {
				links[records[i].Ref] = link
			}
		}
		for i := 0; i < len(records) && bad < 0; i++ {
			if links[records[i].Ref] == "linked" && s.isAncestor(id, records[i].Ref, *records[i].Parent, id, next) {
				bad = i
			}
		}
		if bad < 0 {
			return links
		}
		ref := records[bad].Ref
		refused[bad] = "scope_parent_not_permitted"
		delete(links, ref)
		delete(next, ref)
		if held, isHeld := o.live[ref]; isHeld {
			next[ref] = held.record
		}
		for i, r := range records {
			if r.Parent != nil && r.Parent.Owner == "reserved:"+id && r.Parent.Ref == ref && !slices.Contains(waiting, i) {
				waiting = append(waiting, i)
			}
		}
	}
}

func isNewLink(o owner, r Record) bool {
	held, isHeld := o.live[r.Ref]
	return r.Parent != nil &&
		(!isHeld || held.record.Epoch != r.Epoch || parentText(held.record.Parent) != parentText(r.Parent))
}

// checkLink is section 3, parent: checked against the parent's owner's synced
// set, pending while that owner has not synced.
func (s state) checkLink(id string, p Parent, next map[string]Record) (string, bool) {
	parentOwner, module := strings.CutPrefix(p.Owner, "reserved:")
	if !module {
		return "", false
	}
	if parentOwner != id && !s.owners[parentOwner].synced {
		return "pending", true
	}
	r, live := s.record(parentOwner, p.Ref, id, next)
	if !live || r.Epoch != p.Epoch {
		return "", false
	}
	return "linked", parentOwner == id || strings.Contains(","+set(r.ChildOwners)+",", ",reserved:"+id+",")
}

// record is what is live under a ref, with next in place of owner id's set. A nil
// next stands for the table as it is.
func (s state) record(owner, ref, id string, next map[string]Record) (Record, bool) {
	if next != nil && owner == id {
		r, live := next[ref]
		return r, live
	}
	sc, live := s.owners[owner].live[ref]
	return sc.record, live
}

// isAncestor says whether the links up from p come to owner's ref, at whatever
// epoch. A link joins only the session that it names.
func (s state) isAncestor(owner, ref string, p Parent, id string, next map[string]Record) bool {
	seen := map[string]bool{}
	for {
		up, module := strings.CutPrefix(p.Owner, "reserved:")
		if !module || seen[up+"/"+p.Ref] {
			return false
		}
		if up == owner && p.Ref == ref {
			return true
		}
		seen[up+"/"+p.Ref] = true
		r, live := s.record(up, p.Ref, id, next)
		if !live || r.Epoch != p.Epoch || r.Parent == nil {
			return false
		}
		p = *r.Parent
	}
}

// settleLinks looks at every link again after a change: pending ones whose
// parent's owner has synced by now, linked ones whose parent is gone (section 3).
// An ended one stays ended.
func (s state) settleLinks() {
	settled := map[int]string{}
	for id, o := range s.owners {
		for ref, sc := range o.live {
			if sc.record.Parent == nil || sc.link == "ended" {
				continue
			}
			p := *sc.record.Parent
			parentOwner := strings.TrimPrefix(p.Owner, "reserved:")
			if !s.owners[parentOwner].synced {
				continue
			}
			r, live := s.record(parentOwner, p.Ref, "", nil)
			_, permitted := s.checkLink(id, p, nil)
			switch {
			case !live || r.Epoch != p.Epoch:
				settled[sc.session] = "ended"
			case sc.link == "linked":
				// Losing a place in child_owners ends no link (section 11).
			case permitted && !s.isAncestor(id, ref, p, "", nil):
				settled[sc.session] = "linked"
			default:
				settled[sc.session] = "ended"
			}
		}
	}
	for _, o := range s.owners {
		for ref, sc := range o.live {
			if link, moved := settled[sc.session]; moved {
				sc.link = link
				o.live[ref] = sc
			}
		}
	}
}
