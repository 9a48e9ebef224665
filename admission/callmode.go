package admission

import (
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/table"
)

// CallMode is how a provider runs a route's calls (section 4a). A mode that this
// package does not know keeps its string, and whoever reads one refuses it:
// see [CallMode.Known].
type CallMode string

// The modes.
const (
	Classic  CallMode = "classic"  // a plain scope, or none
	Codemode CallMode = "codemode" // a scope that carries run_id
	Flow     CallMode = "flow"     // a scope that carries flow_id
)

// Known says whether m is one of the three. A provider refuses every other.
func (m CallMode) Known() bool { return m == Classic || m == Codemode || m == Flow }

// UnmarshalJSONFrom reads any string, and nothing but a string.
func (m *CallMode) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '"' {
		return ErrCallMode
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	*m = CallMode(tok.String())
	return nil
}

// DeriveCallMode is the mode of a scope with attrs, nil for no scope. A run
// comes before a flow.
func DeriveCallMode(attrs *table.Attributes) CallMode {
	switch {
	case attrs == nil:
		return Classic
	case attrs.RunID != nil:
		return Codemode
	case attrs.FlowID != nil:
		return Flow
	}
	return Classic
}

// ModeFor is the call_mode member of a bind to a registration that provides
// caps, "" for none: a declarer's binds all carry one, the unscoped ones
// included, and no other target ever sees it.
func ModeFor(caps Capabilities, attrs *table.Attributes) CallMode {
	if !caps.HasCallModes() {
		return ""
	}
	return DeriveCallMode(attrs)
}

// ModeOfBind is the mode that a reader of a bind takes. A bind whose call_mode
// is absent, nil here, comes from a router that predates modes: its mode is its
// scope's, never classic for want of a field.
func ModeOfBind(stamped *CallMode, attrs *table.Attributes) CallMode {
	if stamped == nil {
		return DeriveCallMode(attrs)
	}
	return *stamped
}
