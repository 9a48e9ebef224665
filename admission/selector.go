package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/table"
)

// Selector is the scope member of a route.open (section 4).
type Selector struct {
	Owner        table.Principal
	Ref          string
	Epoch        *uint64 // nil: the open names none, which is refused by name
	BindProof    *string `json:"-"` // as it came, judged only where a rule asks; nil: none. A secret
	HoldPresence bool
}

// Format prints s without its proof, under every verb.
func (s Selector) Format(f fmt.State, _ rune) {
	epoch := "none"
	if s.Epoch != nil {
		epoch = fmt.Sprint(*s.Epoch)
	}
	proof := "none"
	if s.BindProof != nil {
		proof = "[redacted]"
	}
	fmt.Fprintf(f, "{owner %s ref %s epoch %s proof %s hold %t}",
		quotePrincipal(s.Owner), table.QuoteName(s.Ref), epoch, proof, s.HoldPresence)
}

// ParseSelector reads a selector as authority-bearing input is read: a member
// that is unknown, repeated or of another type refuses it. scope_epoch and
// bind_proof may be null, which is absent; hold_presence may not. The error is
// [*SelectorError]. A scope of null is no scope and not for this function.
//
// A proof is any string here: under a record without a hash it is ignored
// however malformed it is.
func ParseSelector(raw []byte) (Selector, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if dec.PeekKind() != '{' {
		return Selector{}, &SelectorError{What: "is not an object"}
	}
	if _, err := dec.ReadToken(); err != nil {
		return Selector{}, malformed(err)
	}
	var s Selector
	var owner, ref bool
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return Selector{}, malformed(err)
		}
		name := tok.String()
		switch name {
		case "owner":
			owner, err = true, readMember(dec, name, '{', "principal", &s.Owner)
		case "ref":
			ref, err = true, readMember(dec, name, '"', "string", &s.Ref)
		case "scope_epoch":
			err = readOptional(dec, name, '0', "unsigned 64-bit integer", &s.Epoch)
		case "bind_proof":
			err = readOptional(dec, name, '"', "string", &s.BindProof)
		case "hold_presence":
			err = readMember(dec, name, 't', "boolean", &s.HoldPresence)
		default:
			err = &SelectorError{Member: name, What: "is unknown"}
		}
		if err != nil {
			return Selector{}, err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return Selector{}, malformed(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Selector{}, &SelectorError{What: "is followed by more"}
	}
	if !owner {
		return Selector{}, &SelectorError{Member: "owner", What: "is required"}
	}
	if !ref {
		return Selector{}, &SelectorError{Member: "ref", What: "is required"}
	}
	return s, nil
}

// readMember decodes the next value into v. The kind is judged first because the
// decoder takes null for any type.
func readMember(dec *jsontext.Decoder, name string, want jsontext.Kind, what string, v any) error {
	got := dec.PeekKind()
	if got == 'f' {
		got = 't'
	}
	if got != want || json.UnmarshalDecode(dec, v) != nil {
		return &SelectorError{Member: name, What: "is not a " + what}
	}
	return nil
}

// readOptional is [readMember] for a member that may be null.
func readOptional[T any](dec *jsontext.Decoder, name string, want jsontext.Kind, what string, v **T) error {
	if dec.PeekKind() == 'n' {
		if _, err := dec.ReadToken(); err != nil {
			return malformed(err)
		}
		return nil
	}
	*v = new(T)
	return readMember(dec, name, want, what, *v)
}

// malformed says what is wrong with a text that is no JSON, without a byte of it.
func malformed(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &SelectorError{What: "has a member twice"}
	}
	return &SelectorError{What: "is not valid JSON"}
}
