package table

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Dump writes the whole table in one canonical form: owners by id, scopes by ref,
// routes by id. It is for golden scripts and for an operator's eyes. It holds no
// secret: of a proof it says only that one is asked for.
func (t *Table) Dump(w io.Writer) {
	var b strings.Builder
	t.mu.Lock()
	for _, o := range t.ownersLocked() {
		o.dumpLocked(&b)
	}
	t.mu.Unlock()
	_, _ = io.WriteString(w, b.String())
}

func (o *owner) dumpLocked(b *strings.Builder) {
	fmt.Fprintf(b, "owner %s", plainName(o.id))
	if o.authorized {
		b.WriteString(" authorized")
	}
	if o.authority.held {
		fmt.Fprintf(b, " authority=%s launch=%d generation=%d", o.authority.peer, o.authority.launch, o.authority.generation)
	} else {
		b.WriteString(" authority=free")
	}
	b.WriteByte('\n')
	refs := make([]string, 0, len(o.live))
	for ref := range o.live {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		o.live[ref].dumpLocked(b)
	}
	for _, stone := range o.tombstones.order[o.tombstones.head:] {
		fmt.Fprintf(b, "  tombstone %s@%d %s\n", plainName(stone.ref), stone.epoch, o.tombstones.cause(stone.ref, stone.epoch, 0))
	}
}

func (s *scope) dumpLocked(b *strings.Builder) {
	fmt.Fprintf(b, "  %s@%d v%d %s", plainName(s.ID.Ref), s.ID.Epoch, s.Version, s.Record.Kind)
	s.Record.dump(b)
	if s.ParentState != 0 {
		fmt.Fprintf(b, " %s", s.ParentState)
	}
	b.WriteByte('\n')
	routes := make([]*route, 0, len(s.routes))
	for r := range s.routes {
		routes = append(routes, r)
	}
	slices.SortFunc(routes, func(r, s *route) int { return int(r.id) - int(s.id) })
	for _, r := range routes {
		state := "in-flight"
		if r.live {
			state = "live"
		}
		fmt.Fprintf(b, "    route %d %s v%d %s %s -> %s\n", r.id, state, r.version, r.Opener, r.Principal, plainName(r.Module))
	}
	holders := make([]Peer, 0, len(s.holders))
	for p := range s.holders {
		holders = append(holders, p)
	}
	slices.SortFunc(holders, Peer.Compare)
	for _, p := range holders {
		state := "provisional"
		if s.holders[p].committed {
			state = "present"
		}
		fmt.Fprintf(b, "    holder %s %s\n", p, state)
	}
}

func (r *Record) dump(b *strings.Builder) {
	a := r.Attributes
	for _, attr := range [...]struct {
		name  string
		value *string
	}{{"agent", a.AgentID}, {"flow", a.FlowID}, {"run", a.RunID}} {
		if attr.value != nil {
			fmt.Fprintf(b, " %s=%s", attr.name, plainName(*attr.value))
		}
	}
	if a.Delegates {
		b.WriteString(" delegates")
	}
	if r.BindProof != nil {
		b.WriteString(" proof")
	}
	if r.ExpiresAtMS != nil {
		fmt.Fprintf(b, " expires=%d", *r.ExpiresAtMS)
	}
	for _, c := range r.Carriers.sorted {
		fmt.Fprintf(b, " carrier=%s", c.Principal)
		if c.Targeted {
			fmt.Fprintf(b, "->%v", c.Targets.sorted)
		}
	}
	for _, p := range r.ChildOwners.sorted {
		fmt.Fprintf(b, " child_owner=%s", p)
	}
	if r.Parent != nil {
		fmt.Fprintf(b, " parent=%s", *r.Parent)
	}
}
