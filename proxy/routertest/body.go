package routertest

import (
	"bytes"
	"errors"
	"fmt"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The router's decoder takes a JSON array wherever it takes an object: the
// members' values in the order they are declared. It ignores unknown members and
// refuses a repeated known one. This file reads as it does.

var errJSON = errors.New("malformed JSON")

// shape is an object or array read against the names it may hold.
type shape map[string]jsontext.Value

// readShape reads raw with the members names, of which an array gives the
// values in order. An array may end early.
func readShape(raw jsontext.Value, names ...string) (shape, error) {
	if !raw.IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, errJSON
	}
	s := shape{}
	switch raw.Kind() {
	case '[':
		values, err := elements(raw)
		if err != nil {
			return nil, err
		}
		if len(values) > len(names) {
			return nil, fmt.Errorf("invalid length %d", len(values))
		}
		for i, v := range values {
			s[names[i]] = v
		}
	case '{':
		o, err := wire.ParseObject(raw)
		if err != nil {
			return nil, errJSON
		}
		for _, name := range names {
			if o.Count(name) > 1 {
				return nil, fmt.Errorf("duplicate field %q", name)
			}
			if v, ok := o.Get(name); ok {
				s[name] = v
			}
		}
	default:
		return nil, errors.New("neither an object nor an array")
	}
	return s, nil
}

// readTag returns the tag of a tagged value: the member called name, or an
// array's first element.
func readTag(raw jsontext.Value, name string) (string, error) {
	if !raw.IsValid(jsontext.AllowDuplicateNames(true)) {
		return "", errJSON
	}
	if raw.Kind() == '[' {
		values, err := elements(raw)
		if err != nil || len(values) == 0 {
			return "", fmt.Errorf("missing field %q", name)
		}
		return shape{name: values[0]}.text(name)
	}
	s, err := readShape(raw, name)
	if err != nil {
		return "", err
	}
	return s.text(name)
}

func elements(raw jsontext.Value) ([]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, errJSON
	}
	var values []jsontext.Value
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, errJSON
		}
		values = append(values, v.Clone())
	}
	return values, nil
}

// absent reports whether an optional member is missing or null.
func (s shape) absent(name string) bool {
	v, ok := s[name]
	return !ok || wire.IsNull(v)
}

func (s shape) into(name string, v any) error {
	raw, ok := s[name]
	if !ok {
		return fmt.Errorf("missing field %q", name)
	}
	if wire.IsNull(raw) || json.Unmarshal(raw, v, jsontext.AllowDuplicateNames(true)) != nil {
		return fmt.Errorf("invalid type for %q", name)
	}
	return nil
}

func (s shape) text(name string) (string, error) {
	var v string
	err := s.into(name, &v)
	return v, err
}

func (s shape) optionalText(name string) (string, error) {
	if s.absent(name) {
		return "", nil
	}
	return s.text(name)
}

func (s shape) list(name string) ([]jsontext.Value, error) {
	raw, ok := s[name]
	if !ok {
		return nil, fmt.Errorf("missing field %q", name)
	}
	if raw.Kind() != '[' {
		return nil, fmt.Errorf("invalid type for %q", name)
	}
	return elements(raw)
}

// texts reads a list of strings. A null in it is none.
func (s shape) texts(name string) ([]string, error) {
	list, err := s.list(name)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list))
	for i, raw := range list {
		if err := (shape{name: raw}).into(name, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compact is raw without the space around its tokens.
func compact(raw jsontext.Value) jsontext.Value {
	if raw == nil {
		return nil
	}
	v := raw.Clone()
	if v.Compact(jsontext.AllowDuplicateNames(true)) != nil {
		return raw
	}
	return v
}
