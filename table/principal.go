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

// String prints p as the contract's examples do: reserved:aft, direct.
func (p Principal) String() string {
	if p.Kind == Reserved {
		return "reserved:" + plainName(p.ModuleID)
	}
	return p.Kind.String()
}

// Compare orders principals by kind, then by module id.
func (p Principal) Compare(q Principal) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), strings.Compare(p.ModuleID, q.ModuleID))
}

// MarshalJSONTo writes {"kind"} or {"kind","module_id"}.
func (p Principal) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(p.appendJSON(nil))
}

// UnmarshalJSONFrom reads a principal as scope input is read: an unknown member
// is refused by name, since it may be one that narrows a grant. Its errors are
// [FieldError] and hold no value.
func (p *Principal) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*p, err = newReader(string(raw)).principal()
	return err
}

var (
	_ json.MarshalerTo     = Principal{}
	_ json.UnmarshalerFrom = (*Principal)(nil)
)

func (p Principal) appendJSON(b []byte) []byte {
	b = append(b, `{"kind":"`...)
	b = append(b, p.Kind.String()...)
	b = append(b, '"')
	if p.Kind == Reserved {
		b = appendString(append(b, `,"module_id":`...), p.ModuleID)
	}
	return append(b, '}')
}

var principalMembers = members{"kind", "module_id"}

func (r *reader) principal() (p Principal, err error) {
	s, err := r.object(principalMembers, false, func(i int) (err error) {
		if i == 1 {
			p.ModuleID, err = r.string()
			return err
		}
		kind, err := r.choice(principalKinds[:], "is no principal kind")
		p.Kind = PrincipalKind(kind)
		return err
	})
	if err != nil {
		return Principal{}, err
	}
	if err := principalMembers.require(s, 0); err != nil {
		return Principal{}, err
	}
	if p.Kind == Reserved {
		return p, principalMembers.require(s, 1)
	}
	if s.has(1) {
		return Principal{}, unknownMember("module_id")
	}
	return p, nil
}
