package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Record is a scope record as an owner sends it.
type Record struct {
	Ref         string
	Epoch       uint64
	Kind        string
	Proof       string  // the hash's 64 characters, "" for none
	Expires     *uint64 // Unix milliseconds, nil for never
	Parent      *Parent
	ChildOwners []string // principals
	Carriers    []Carrier
	// Attributes holds agent_id, flow_id and run_id when set, and delegates when
	// true.
	Attributes map[string]string
	OnlyIfIdle bool // of the request, never content
}

// Parent names the session that a scope is a child of.
type Parent struct {
	Owner string // a principal
	Ref   string
	Epoch uint64
}

// Carrier is one entry of a record's carriers.
type Carrier struct {
	Principal string
	Targeted  bool // false: any module
	Targets   []string
}

// End names a session to end.
type End struct {
	Ref   string
	Epoch uint64
}

// content is what "the record's content changes" looks at (section 2). Sets are
// sets: neither order nor repeats count.
func (r Record) content() string {
	var carriers []string
	for _, c := range r.Carriers {
		carriers = append(carriers, fmt.Sprint(c.Principal, c.Targeted, set(c.Targets)))
	}
	var attributes []string
	for _, k := range slices.Sorted(maps.Keys(r.Attributes)) {
		attributes = append(attributes, k+"="+r.Attributes[k])
	}
	return fmt.Sprint(r.Ref, r.Epoch, r.Kind, r.Proof, text(r.Expires), parentText(r.Parent),
		set(r.ChildOwners), set(carriers), attributes)
}

func text(n *uint64) string {
	if n == nil {
		return "never"
	}
	return fmt.Sprint(*n)
}

func parentText(p *Parent) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s@%d", p.Owner, p.Ref, p.Epoch)
}

func set(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// passed is section 2: the deadline is at or before the wall clock.
func (r Record) passed(now int64) bool { return r.Expires != nil && *r.Expires <= uint64(now) }

// permits is section 2, carriers: a bare entry opens to any module, a targeted
// one to the listed modules.
func (r Record) permits(principal, module string) bool {
	for _, c := range r.Carriers {
		if c.Principal == principal && (!c.Targeted || slices.Contains(c.Targets, module)) {
			return true
		}
	}
	return false
}
