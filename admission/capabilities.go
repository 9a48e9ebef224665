package admission

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Capability is a versioned promise of a module. It is matched exactly: another
// version or case is another capability.
type Capability string

// The capabilities that open a gate (section 4) or choose a bind's fields
// (section 4a).
const (
	CallModes      Capability = "call-modes/v1"
	FlowScopes     Capability = "flow-scopes/v1"
	AgentRunScopes Capability = "agent-run-scopes/v1"
)

// Capabilities is what a registration provides. It is a set and serializes as
// one, sorted (ADR-0134). The zero value provides nothing. It is immutable.
type Capabilities struct {
	sorted []Capability // without repeats
}

// NewCapabilities makes the set of provides, in whatever order and however often
// they come.
func NewCapabilities(provides ...Capability) Capabilities {
	if len(provides) == 0 {
		return Capabilities{}
	}
	sorted := slices.Clone(provides)
	slices.Sort(sorted)
	return Capabilities{sorted: slices.Compact(sorted)}
}

// ParseCapabilities reads a manifest's capabilities member. An empty raw and
// null provide nothing. Members other than provides are the router's to judge.
// On an error nothing is provided.
func ParseCapabilities(raw []byte) (Capabilities, error) {
	if len(raw) == 0 {
		return Capabilities{}, nil
	}
	switch jsontext.Value(raw).Kind() {
	case 'n':
		return Capabilities{}, nil
	case '{':
	default:
		return Capabilities{}, ErrCapabilities
	}
	var block struct {
		Provides []jsontext.Value `json:"provides"`
	}
	if err := json.Unmarshal(raw, &block); err != nil {
		return Capabilities{}, ErrCapabilities
	}
	provides := make([]Capability, 0, len(block.Provides))
	for _, v := range block.Provides {
		var c Capability
		if v.Kind() != '"' || json.Unmarshal(v, &c) != nil {
			return Capabilities{}, ErrCapabilities
		}
		provides = append(provides, c)
	}
	return NewCapabilities(provides...), nil
}

// Has says whether c is provided.
func (s Capabilities) Has(c Capability) bool {
	_, found := slices.BinarySearch(s.sorted, c)
	return found
}

// HasCallModes says whether the registration is a declarer: its binds carry
// call_mode, and the deadline where there is one (section 4a).
func (s Capabilities) HasCallModes() bool { return s.Has(CallModes) }

// Sorted is the set in order. The caller must not change it.
func (s Capabilities) Sorted() []Capability { return s.sorted }

// MarshalJSONTo writes the sorted array.
func (s Capabilities) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, s.sorted)
}
