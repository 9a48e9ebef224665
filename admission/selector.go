package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

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
			owner, err = true, readOwner(dec, &s.Owner)
		case "ref":
			ref = true
			s.Ref, err = readText(dec, name)
		case "scope_epoch":
			if dec.PeekKind() == 'n' {
				err = skipNull(dec)
				break
			}
			s.Epoch = new(uint64)
			*s.Epoch, err = readEpoch(dec, name)
		case "bind_proof":
			if dec.PeekKind() == 'n' {
				err = skipNull(dec)
				break
			}
			s.BindProof = new(string)
			*s.BindProof, err = readText(dec, name)
		case "hold_presence":
			s.HoldPresence, err = readFlag(dec, name)
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

func readOwner(dec *jsontext.Decoder, p *table.Principal) error {
	if dec.PeekKind() != '{' || p.UnmarshalJSONFrom(dec) != nil {
		return &SelectorError{Member: "owner", What: "is not a principal"}
	}
	return nil
}

func readText(dec *jsontext.Decoder, name string) (string, error) {
	if dec.PeekKind() == '"' {
		if tok, err := dec.ReadToken(); err == nil {
			return tok.String(), nil
		}
	}
	return "", &SelectorError{Member: name, What: "is not a string"}
}

func readEpoch(dec *jsontext.Decoder, name string) (uint64, error) {
	if dec.PeekKind() == '0' {
		if raw, err := dec.ReadValue(); err == nil {
			if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
				return n, nil
			}
		}
	}
	return 0, &SelectorError{Member: name, What: "is not a unsigned 64-bit integer"}
}

func skipNull(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return malformed(err)
	}
	return nil
}

func readFlag(dec *jsontext.Decoder, name string) (bool, error) {
	switch dec.PeekKind() {
	case 't', 'f':
		if tok, err := dec.ReadToken(); err == nil {
			return tok.Bool(), nil
		}
	}
	return false, &SelectorError{Member: name, What: "is not a boolean"}
}

// malformed says what is wrong with a text that is no JSON, without a byte of it.
func malformed(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &SelectorError{What: "has a member twice"}
	}
	return &SelectorError{What: "is not valid JSON"}
}
