package admission

import "scopeward/table"

// Commit settles an admitted bind at the module's ack: the captured tag is
// compared with the record's and the route becomes live in that same step
// (section 4). A stale tag is refused [CodeEnded] or [CodeChanged], and all that
// was reserved is released; the module's other routes stay up.
//
// A refusal without a code means that the reservation was gone already: its
// opener or provider left, and there is nothing to answer.
func Commit(t *table.Table, admitted Decision) Decision {
	v := t.Commit(admitted.Route)
	if v == table.Committed {
		return admitted
	}
	d := Decision{Code: Code(v.Code()), Rule: "4 commit"}
	if d.Code != "" {
		d.Message = sayStale(admitted.Tag.ScopeID, d.Code)
	}
	return d
}
