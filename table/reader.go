package table

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// reader decodes bodies strictly. It takes objects for objects only, where the
// router's own decoder also takes arrays, and refuses a repeated member by name.
type reader struct {
	dec *jsontext.Decoder
	// names keeps one copy of each module id of a long body, nil for a short one.
	names map[string]string
	// asWritten keeps sets in the order in which they come.
	asWritten bool
}

func newReader(body []byte) *reader {
	// Repeats are refused by members, by name. The decoder need not remember
	// the names of every object.
	r := &reader{dec: new(jsontext.Decoder)}
	r.reset(body)
	if len(body) > longBody {
		r.names = map[string]string{}
	}
	return r
}

// reset makes r read body.
func (r *reader) reset(body []byte) {
	r.dec.Reset(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
}

// longBody is from how many bytes on a body repeats its names enough to keep
// them.
const longBody = 4 << 10

// finish says whether nothing follows the value.
func (r *reader) finish() error {
	if _, err := r.dec.ReadToken(); err != io.EOF {
		return &FieldError{What: "is not one JSON value"}
	}
	return nil
}

// members is the closed set of an object's member names.
type members []string

func (m members) index(raw jsontext.Value) int {
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, raw)
	}
	for i := range m {
		if m[i] == string(name) {
			return i
		}
	}
	return -1
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
	if r.dec.PeekKind() != '{' {
		return 0, r.mismatch("is not an object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return 0, err
	}
	var s seen
	for r.dec.PeekKind() != '}' {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return s, err
		}
		i := m.index(raw)
		if i < 0 {
			if !open {
				name, _ := jsontext.AppendUnquote(nil, raw)
				return s, unknownMember(string(name))
			}
			if err := r.dec.SkipValue(); err != nil {
				return s, err
			}
			continue
		}
		if s.has(i) {
			return s, &FieldError{Field: m[i], What: "is given twice"}
		}
		s |= 1 << i
		if err := visit(i); err != nil {
			return s, within(m[i], err)
		}
	}
	_, err := r.dec.ReadToken()
	return s, err
}

// array reads an array and visits each element.
func (r *reader) array(visit func() error) error {
	if r.dec.PeekKind() != '[' {
		return r.mismatch("is not a list")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for n := 0; r.dec.PeekKind() != ']'; n++ {
		if err := visit(); err != nil {
			return within("["+strconv.Itoa(n)+"]", err)
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// mismatch reports a value of the wrong type, or the syntax error that hides it.
func (r *reader) mismatch(what string) error {
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	return &FieldError{What: what}
}

func (r *reader) scalar(kinds string, what string) (jsontext.Value, error) {
	if strings.IndexByte(kinds, byte(r.dec.PeekKind())) < 0 {
		return nil, r.mismatch(what)
	}
	return r.dec.ReadValue()
}

func (r *reader) string() (string, error) {
	s, err := r.bytes()
	return string(s), err
}

// name reads a string that the body is likely to hold again.
func (r *reader) name() (string, error) {
	inner, err := r.bytes()
	if err != nil {
		return "", err
	}
	if s, ok := r.names[string(inner)]; ok {
		return s, nil
	}
	s := string(inner)
	if r.names != nil {
		r.names[s] = s
	}
	return s, nil
}

// bytes reads a string into memory that is good until the next read.
func (r *reader) bytes() ([]byte, error) {
	raw, err := r.scalar(`"`, "is not a string")
	if err != nil {
		return nil, err
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// choice reads a string that is one of wire, whose index it answers. The empty
// names in wire are no choices.
func (r *reader) choice(wire []string, what string) (int, error) {
	s, err := r.bytes()
	if err != nil {
		return 0, err
	}
	for i, name := range wire {
		if name != "" && name == string(s) {
			return i, nil
		}
	}
	return 0, &FieldError{What: what}
}

// uint reads an unsigned 64-bit integer, exact over its whole range.
func (r *reader) uint() (uint64, error) {
	raw, err := r.scalar("0", "is not a number")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, &FieldError{What: "is not an unsigned 64-bit integer"}
	}
	return n, nil
}

func (r *reader) bool() (bool, error) {
	raw, err := r.scalar("tf", "is not true or false")
	return err == nil && raw[0] == 't', err
}

// null reads a null, if that is what comes.
func (r *reader) null() bool {
	if r.dec.PeekKind() != 'n' {
		return false
	}
	_, err := r.dec.ReadToken()
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
