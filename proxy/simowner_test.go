package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scopeward/proxy/wire"
)

// simRefs are the refs that owners use.
var simRefs = []string{"s0", "s1", "s2"}

// simOwner is what an owner keeps over its restarts.
type simOwner struct {
	id         string
	generation uint64
	epochs     map[string]uint64
	records    map[string]doc
}

func newSimOwner(id string) *simOwner {
	return &simOwner{id: id, epochs: map[string]uint64{}, records: map[string]doc{}}
}

// call is a sync or an apply that changes a little.
func (o *simOwner) call(s *sim) doc {
	o.generation++
	if s.chance(5) {
		o.generation-- // stale
	}
	ref := pick(s, simRefs)
	ends := []doc{}
	if s.chance(12) && o.records[ref] != nil {
		delete(o.records, ref)
		ends = append(ends, doc{"ref": ref, "scope_epoch": o.epochs[ref]})
	} else {
		o.change(s, ref)
	}
	d := doc{"op": wire.OpScopeSync, "generation": o.generation, "scopes": o.list()}
	if s.chance(40) {
		upserts := []doc{}
		if r := o.records[ref]; r != nil {
			upserts = append(upserts, r)
		}
		d = doc{"op": wire.OpScopeApply, "generation": o.generation, "upsert": upserts, "end": ends}
	}
	if s.chance(5) {
		d["padding"] = strings.Repeat("x", largeCall) // a job then
	}
	return d
}

func (o *simOwner) list() []doc {
	list := []doc{}
	for _, ref := range slices.Sorted(maps.Keys(o.records)) {
		list = append(list, o.records[ref])
	}
	return list
}

// change makes another record under ref: now and then of a new epoch.
func (o *simOwner) change(s *sim, ref string) {
	old := o.records[ref]
	d := maps.Clone(old)
	if d == nil || s.chance(25) {
		o.epochs[ref]++
		d = doc{"ref": ref, "scope_epoch": o.epochs[ref], "kind": "head"}
		if s.chance(40) {
			d["replace_only_if_idle"] = true
			s.ifIdle[fmt.Sprintf("%s/%s@%d", o.id, ref, o.epochs[ref])] = true
		}
		if s.chance(15) {
			d["expires_at_ms"] = time.Now().UnixMilli() + int64(500+s.rng.IntN(20_000))
		}
		if o.id == "child" && s.chance(50) {
			parent := s.owners[0]
			r := pick(s, simRefs)
			d["parent"] = doc{"owner": doc{"kind": "reserved", "module_id": parent.id}, "ref": r, "scope_epoch": max(1, parent.epochs[r])}
		}
	}
	carriers := []doc{}
	if s.chance(85) {
		c := doc{"principal": doc{"kind": "direct"}}
		if s.chance(25) {
			c["targets"] = []string{"tool"}
		}
		carriers = append(carriers, c)
	}
	if s.chance(70) {
		carriers = append(carriers, doc{"principal": doc{"kind": "reserved", "module_id": "runner"}})
	}
	d["carriers"] = carriers
	delete(d, "attributes")
	if o.id == "owner" {
		if s.chance(30) {
			d["attributes"] = doc{"agent_id": pick(s, []string{"a", "b"}), "delegates": s.chance(50)}
		}
		d["child_owners"] = []doc{{"kind": "reserved", "module_id": "child"}}
	}
	o.records[ref] = d
}
