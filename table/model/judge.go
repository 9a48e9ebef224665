package model

import (
	"slices"
	"strings"
)

// Bounds of section 2 that tests reach as they are.
const (
	maxAhead      = 24 * 60 * 60 * 1000
	maxTargets    = 16
	maxAttributes = 4 << 10
	maxHolders    = 8
)

// judgeBody is step 5 of section 3's order: the records one by one, then the ends.
func judgeBody(records []Record, ends []End) string {
	refs := map[string]bool{}
	for _, r := range records {
		if r.Ref == "" || refs[r.Ref] {
			return "invalid_control_body"
		}
		refs[r.Ref] = true
		for _, name := range []string{"flow_id", "run_id"} {
			if token, given := r.Attributes[name]; given && !isToken(token) {
				return "invalid_control_body"
			}
		}
		if attributeBytes(r.Attributes) > maxAttributes {
			return "scope_attributes_too_large"
		}
	}
	for _, e := range ends {
		if e.Ref == "" || refs[e.Ref] {
			return "invalid_control_body"
		}
		refs[e.Ref] = true
	}
	return ""
}

// isToken is section 2, flow identity: 1 to 256 printable ASCII, no space.
func isToken(s string) bool {
	strange := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
	return len(s) >= 1 && len(s) <= 256 && !strange
}

// attributeBytes is the length of {"agent_id":"x","delegates":true}. The values
// that tests send need no escapes.
func attributeBytes(attributes map[string]string) int {
	n := len("{}")
	for name, value := range attributes {
		n += len(`"":,`) + len(name) + len(value)
		if name != "delegates" {
			n += len(`""`)
		}
	}
	if len(attributes) > 0 {
		n -= len(",")
	}
	return n
}

// judgeRecord is a record's own checks, in the router's order, but for its
// parent. o is the owner after the call's sweep.
func (m *Model) judgeRecord(s state, id string, o owner, r Record, now int64, inUse bool) string {
	for _, c := range r.Carriers {
		if c.Targeted && (len(c.Targets) == 0 || len(c.Targets) > maxTargets) {
			return "scope_carrier_targets_invalid"
		}
	}
	_, agent := r.Attributes["agent_id"]
	_, delegates := r.Attributes["delegates"]
	_, flow := r.Attributes["flow_id"]
	_, run := r.Attributes["run_id"]
	switch {
	case len(r.Attributes) > 0 && !slices.Contains(m.authorized, id):
		return "scope_attribute_not_permitted"
	case delegates && !agent:
		return "scope_delegates_without_agent"
	case run && !agent:
		return "scope_run_id_without_agent"
	case run && flow:
		return "scope_run_id_with_flow_id"
	}
	refusals := map[string]string{"expired": "scope_expired", "owner_ended": "scope_epoch_ended"}
	if cause, ended := s.ended[name(id, r.Ref, r.Epoch)]; ended && m.Remembers {
		return refusals[cause]
	}
	var highestEnded uint64
	for _, t := range o.tombstones {
		if t.ref == r.Ref {
			if t.epoch == r.Epoch {
				return refusals[t.cause]
			}
			highestEnded = max(highestEnded, t.epoch)
		}
	}
	held, isHeld := o.live[r.Ref]
	sameEpoch := isHeld && held.record.Epoch == r.Epoch
	switch {
	case isHeld && r.Epoch < held.record.Epoch, !isHeld && r.Epoch < highestEnded:
		return "scope_epoch_regressed"
	case sameEpoch && r.Kind != held.record.Kind:
		return "scope_kind_changed"
	case sameEpoch && text(r.Expires) != text(held.record.Expires):
		return "scope_expiry_immutable"
	case !sameEpoch && r.passed(now):
		return "scope_expired"
	case !sameEpoch && r.Expires != nil && *r.Expires-uint64(now) > maxAhead:
		return "scope_expiry_too_far"
	case r.OnlyIfIdle && isHeld && inUse && (!sameEpoch || r.Proof != held.record.Proof):
		return "scope_epoch_in_use"
	}
	return ""
}

// inUse is section 4, idle-only rotation: a bind or route of an opener that is
// not reserved, or a presence holder.
func (s state) inUse(sc scope) bool {
	for _, r := range s.routes {
		if r.session == sc.session && !isReserved(r.principal) {
			return true
		}
	}
	return len(sc.present) > 0
}

func isReserved(principal string) bool { return strings.HasPrefix(principal, "reserved:") }
