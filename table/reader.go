package table

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// reader decodes bodies strictly. It takes objects for objects only, where the
// router's own decoder also takes arrays, and refuses a repeated member by name.
type reader struct {
	scanner
	// left is how many records are still to be read, the present one included:
	// what they hold is made for all of them at once.
	left int
	// view says that text is the caller's: no string of it may be kept.
	view bool
	// asWritten keeps sets in the order in which they come.
	asWritten bool

	records      slab[Record]
	strings      slab[string]
	carrierSet   slab[Carrier]
	moduleSet    slab[ModuleID]
	principalSet slab[Principal]
	// What is being listed, before its length is known.
	carrierList   []Carrier
	moduleList    []ModuleID
	principalList []Principal
}

// newReader reads text, whose strings may be kept.
func newReader(text string) *reader { return &reader{scanner: scanner{text: text}, left: 1} }

// finish says whether nothing follows the value.
func (r *reader) finish() error {
	if r.space(); r.at < len(r.text) {
		return &FieldError{What: "is not one JSON value"}
	}
	return nil
}

// members is the closed set of an object's member names.
type members []string

// index finds the member that a name with its quotes stands for, -1 for none.
func (m members) index(raw string, escaped bool) int {
	name := raw[1 : len(raw)-1]
	if escaped {
		name = unquoted(raw)
	}
	for i := range m {
		if m[i] == name {
			return i
		}
	}
	return -1
}

// unquoted is a valid string with escapes, decoded.
func unquoted(raw string) string {
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}

// seen is the set of members that an object held, by index.
type seen uint32

func (s seen) has(i int) bool { return s&(1<<i) != 0 }

// require fails on the first of wanted that s lacks.
func (m members) require(s seen, wanted ...int) error {
	for _, i := range wanted {
		if !s.has(i) {
			return missing(m[i])
		}
	}
	return nil
}

// object reads an object and visits each member of m. Others are refused by
// name, or skipped when open.
func (r *reader) object(m members, open bool, visit func(i int) error) (seen, error) {
	var s seen
	if r.peek() != '{' {
		return s, r.mismatch("is not an object")
	}
	r.at++
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if !more {
			return s, err
		}
		raw, escaped, err := r.str()
		if err != nil {
			return s, err
		}
		i := m.index(raw, escaped)
		if i < 0 && !open {
			return s, unknownMember(unquoted(raw))
		}
		if i >= 0 && s.has(i) {
			return s, &FieldError{Field: m[i], What: "is given twice"}
		}
		if err := r.colon(); err != nil {
			return s, err
		}
		if i < 0 {
			if err := r.skip(); err != nil {
				return s, err
			}
			continue
		}
		s |= 1 << i
		if err := visit(i); err != nil {
			return s, within(m[i], err)
		}
	}
}

// array reads an array and visits each element.
func (r *reader) array(visit func() error) error {
	if r.peek() != '[' {
		return r.mismatch("is not a list")
	}
	r.at++
	for n := 0; ; n++ {
		more, err := r.more(']', n == 0)
		if !more {
			return err
		}
		if err := visit(); err != nil {
			return within("["+strconv.Itoa(n)+"]", err)
		}
	}
}

// mismatch reports a value of the wrong type, or the syntax error that hides it.
func (r *reader) mismatch(what string) error {
	if err := r.skip(); err != nil {
		return err
	}
	return &FieldError{What: what}
}

// peeked reads a string into memory that is the text's.
func (r *reader) peeked() (string, error) {
	if r.peek() != '"' {
		return "", r.mismatch("is not a string")
	}
	raw, escaped, err := r.str()
	switch {
	case err != nil:
		return "", err
	case escaped:
		return unquoted(raw), nil
	}
	return raw[1 : len(raw)-1], nil
}

func (r *reader) string() (string, error) {
	s, err := r.peeked()
	if r.view {
		s = strings.Clone(s)
	}
	return s, err
}

// choice reads a string that is one of wire, whose index it answers. The empty
// names in wire are no choices.
func (r *reader) choice(wire []string, what string) (int, error) {
	s, err := r.peeked()
	if err != nil {
		return 0, err
	}
	for i, name := range wire {
		if name != "" && name == s {
			return i, nil
		}
	}
	return 0, &FieldError{What: what}
}

// uint reads an unsigned 64-bit integer, exact over its whole range.
func (r *reader) uint() (uint64, error) {
	if r.peek() != '0' {
		return 0, r.mismatch("is not a number")
	}
	raw, err := r.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(raw, 10, 64)
	if err != nil {
		return 0, &FieldError{What: "is not an unsigned 64-bit integer"}
	}
	return n, nil
}

func (r *reader) bool() (bool, error) {
	if k := r.peek(); k != 't' && k != 'f' {
		return false, r.mismatch("is not true or false")
	}
	raw, err := r.word()
	return err == nil && raw == "true", err
}

// null reads a null, if that is what comes.
func (r *reader) null() bool {
	if r.peek() != 'n' {
		return false
	}
	_, err := r.word()
	return err == nil
}

// optional reads a value by read, and null as none.
func optional[T any](r *reader, read func() (T, error)) (*T, error) {
	if r.null() {
		return nil, nil
	}
	v, err := read()
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// optionalString is optional of string.
func (r *reader) optionalString() (*string, error) {
	if r.null() {
		return nil, nil
	}
	s, err := r.string()
	if err != nil {
		return nil, err
	}
	p := &r.strings.take(1, r.left)[0]
	*p = s
	return p, nil
}
