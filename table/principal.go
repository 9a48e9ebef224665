package table

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// PrincipalKind is how the router knows a peer.
type PrincipalKind uint8

const (
	// Reserved is a supervised module, attested by its launch nonce.
	Reserved PrincipalKind = iota + 1
	// Direct is a peer that presented no identity.
	Direct
	// Unverified is a peer whose identity the router passes on unchecked.
	Unverified
)

var principalKinds = [...]string{Reserved: "reserved", Direct: "direct", Unverified: "unverified"}

// String is the kind's wire name, "" for the zero value.
func (k PrincipalKind) String() string {
	if int(k) < len(principalKinds) {
		return principalKinds[k]
	}
	return ""
}

// Principal is who the router attests at the other end of a connection (section
// 11, wire shapes). It is comparable. The zero value is no principal. ModuleID is
// set exactly when Kind is [Reserved].
type Principal struct {
	Kind     PrincipalKind
	ModuleID string
}

// ReservedPrincipal is the principal of the supervised module id.
func ReservedPrincipal(id string) Principal { return Principal{Kind: Reserved, ModuleID: id} }

// Reserved says whether p is attested by a launch nonce.
func (p Principal) Reserved() bool { return p.Kind == Reserved }

// String prints p as the contract's examples do: "reserved:aft", "direct".
func (p Principal) String() string {
	if p.Kind == Reserved {
		return "reserved:" + p.ModuleID
	}
	return p.Kind.String()
}

// Compare orders principals by kind, then by module id.
func (p Principal) Compare(q Principal) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), strings.Compare(p.ModuleID, q.ModuleID))
}

// MarshalJSONTo writes {"kind"} or {"kind","module_id"}.
func (p Principal) MarshalJSONTo(enc *jsontext.Encoder) error {
	w := objectWriter{enc: enc}
	w.begin()
	w.str("kind", p.Kind.String())
	if p.Kind == Reserved {
		w.str("module_id", p.ModuleID)
	}
	w.end()
	return w.err
}

// UnmarshalJSONFrom reads a principal as scope input is read: an unknown member
// is refused by name, since it may be one that narrows a grant.
func (p *Principal) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var kind, id optional[string]
	err := readObject(dec, func(name string) (any, bool) {
		switch name {
		case "kind":
			return &kind, true
		case "module_id":
			return &id, true
		}
		return nil, false
	})
	if err != nil {
		return err
	}
	*p, err = newPrincipal(kind, id)
	return err
}

func newPrincipal(kind, id optional[string]) (Principal, error) {
	if !kind.set {
		return Principal{}, missing("kind")
	}
	switch kind.value {
	case "reserved":
		if !id.set {
			return Principal{}, missing("module_id")
		}
		return ReservedPrincipal(id.value), nil
	case "direct", "unverified":
		if id.set {
			return Principal{}, unknownMember("module_id")
		}
		if kind.value == "direct" {
			return Principal{Kind: Direct}, nil
		}
		return Principal{Kind: Unverified}, nil
	}
	return Principal{}, &FieldError{Field: "kind", What: "is no principal kind"}
}

var (
	_ json.MarshalerTo     = Principal{}
	_ json.UnmarshalerFrom = (*Principal)(nil)
)
