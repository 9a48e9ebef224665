package model

// settle makes after the state: links are looked at again, new content gets a
// new version, and what live routes lose closes them. Everything is found by
// comparing with the state before.
func (m *Model) settle(after state) []Drain {
	after.settleLinks()
	was := map[int]scope{}
	for _, o := range m.owners {
		for _, sc := range o.live {
			was[sc.session] = sc
		}
	}
	for _, id := range sortedKeys(after.owners) {
		o := after.owners[id]
		for _, ref := range sortedKeys(o.live) {
			sc := o.live[ref]
			old, had := was[sc.session]
			if !had || old.record.content() != sc.record.content() || old.link != sc.link {
				after.versions++
				sc.version = after.versions
				o.live[ref] = sc
			}
		}
	}
	var drains []Drain
	for _, id := range sortedKeys(after.routes) {
		r := after.routes[id]
		if !r.live {
			continue
		}
		is, live := after.under(r)
		if why := drainReason(r, was[r.session], is, live); why != "" {
			drains = append(drains, Drain{id, why})
			delete(after.routes, id)
		}
	}
	m.state = after
	return drains
}

// drainReason is the table of section 5a, by the rank of section 11.
func drainReason(r route, was, is scope, live bool) string {
	before, after := was.record.Attributes, is.record.Attributes
	_, delegated := before["delegates"]
	_, delegates := after["delegates"]
	switch {
	case !live:
		return "scope_ended"
	case was.link != "ended" && is.link == "ended":
		return "scope_parent_ended"
	case delegated && !delegates,
		!sameAttribute("agent_id", before, after),
		!sameAttribute("flow_id", before, after),
		!sameAttribute("run_id", before, after):
		return "scope_delegation_changed"
	case r.principal != "reserved:"+r.owner && !is.record.permits(r.principal, r.module):
		return "scope_carrier_removed"
	}
	return ""
}

func sameAttribute(name string, a, b map[string]string) bool {
	va, hasA := a[name]
	vb, hasB := b[name]
	return va == vb && hasA == hasB
}
