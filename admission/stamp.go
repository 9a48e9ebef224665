package admission

import "scopeward/table"

// renderStamp is the scope member of a bind to a registration that provides
// caps. The deadline goes only to a declarer of call modes: a reader from before
// it may refuse the member and stop serving (section 4a).
func renderStamp(s table.Stamp, caps Capabilities) []byte {
	if !caps.HasCallModes() {
		s.ExpiresAtMS = nil
	}
	return s.AppendJSON(nil)
}
