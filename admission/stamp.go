package admission

import (
	"github.com/go-json-experiment/json"

	"scopeward/table"
)

// renderStamp is the scope member of a bind to a registration that provides
// caps. The deadline goes only to a declarer of call modes: a reader from before
// it may refuse the member and stop serving (section 4a). Nothing that a table holds
// fails to render.
func renderStamp(s table.Stamp, caps Capabilities) ([]byte, error) {
	if !caps.HasCallModes() {
		s.ExpiresAtMS = nil
	}
	return json.Marshal(s, json.Deterministic(true))
}
