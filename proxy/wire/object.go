package wire

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of a JSON object as it came.
type Member struct {
	Name string         // decoded: escapes are resolved
	Raw  jsontext.Value // the value's bytes, in the body they came in
	name []byte         // the name's bytes with its quotes; nil when we wrote it
}

// Object is the top level of a control body: its members in the order they
// came, repeated ones included. Values are not looked into.
type Object struct {
	Members []Member
}

// ParseObject splits body into members. It accepts every text that is a JSON
// object, of any depth, and may accept some that are not: those the router
// refuses when it reads them. It returns [ErrNotObject] for everything else,
// an array at the top included.
//
// The members alias body.
func ParseObject(body []byte) (Object, error) {
	s := splitter{b: body}
	return s.object()
}

// Get returns the last member called name, as the router's decoder would take
// it, and whether there is one.
func (o *Object) Get(name string) (jsontext.Value, bool) {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Name == name {
			return o.Members[i].Raw, true
		}
	}
	return nil, false
}

// Count returns how many members are called name.
func (o *Object) Count(name string) int {
	n := 0
	for i := range o.Members {
		if o.Members[i].Name == name {
			n++
		}
	}
	return n
}

// Set gives the member called name the value raw, in its place when there is
// one and else at the end. Repeated members become one.
func (o *Object) Set(name string, raw jsontext.Value) {
	for i := range o.Members {
		if o.Members[i].Name == name {
			o.Members[i].Raw = raw
			o.drop(name, i+1)
			return
		}
	}
	o.Members = append(o.Members, Member{Name: name, Raw: raw})
}

// Delete removes every member called name.
func (o *Object) Delete(name string) { o.drop(name, 0) }

func (o *Object) drop(name string, from int) {
	kept := o.Members[:from]
	for _, m := range o.Members[from:] {
		if m.Name != name {
			kept = append(kept, m)
		}
	}
	o.Members = kept
}

// size is how long the object is when it is rendered, at most.
func (o *Object) size() int {
	n := len("{}")
	for i := range o.Members {
		m := &o.Members[i]
		n += max(len(m.name), 6*len(m.Name)+2) + len(m.Raw) + len(":,")
	}
	return n
}

// AppendFrame appends a whole frame whose body is the object.
func (o *Object) AppendFrame(b []byte, h Header) []byte {
	b = slices.Grow(b, HeaderLen+o.size())
	start := len(b)
	b = o.Append(h.Append(b))
	h.Len = uint32(len(b) - start - HeaderLen)
	h.Append(b[:start])
	return b
}

// Append renders the object to b. Members that were not set are rendered byte
// for byte.
func (o *Object) Append(b []byte) []byte {
	b = append(b, '{')
	for i := range o.Members {
		if i > 0 {
			b = append(b, ',')
		}
		m := &o.Members[i]
		if m.name != nil {
			b = append(b, m.name...)
		} else {
			b, _ = jsontext.AppendQuote(b, m.Name)
		}
		b = append(b, ':')
		b = append(b, m.Raw...)
	}
	return append(b, '}')
}

// Unmarshal decodes raw into v as the sidecar's own members are decoded:
// unknown and repeated members, members in another case and invalid UTF-8 are
// refused.
func Unmarshal(raw []byte, v any) error {
	return json.Unmarshal(raw, v, json.RejectUnknownMembers(true))
}

// usualMembers is how many members most bodies have at most.
const usualMembers = 8

// splitter walks a body once. It never recurses, so no depth can hurt it.
type splitter struct {
	b []byte
	i int
}

func (s *splitter) object() (Object, error) {
	var o Object
	s.space()
	if !s.take('{') {
		return o, ErrNotObject
	}
	s.space()
	if s.take('}') {
		return o, s.end()
	}
	o.Members = make([]Member, 0, usualMembers)
	for {
		start := s.i
		if !s.str() {
			return o, ErrNotObject
		}
		m := Member{name: s.b[start:s.i:s.i]}
		m.Name = unquote(m.name)
		s.space()
		if !s.take(':') {
			return o, ErrNotObject
		}
		s.space()
		start = s.i
		if !s.value() {
			return o, ErrNotObject
		}
		m.Raw = jsontext.Value(s.b[start:s.i:s.i])
		o.Members = append(o.Members, m)
		s.space()
		if s.take(',') {
			s.space()
			continue
		}
		if s.take('}') {
			return o, s.end()
		}
		return o, ErrNotObject
	}
}

// unquote decodes a member's name. A name that is not well formed is kept as it
// stands: it can't be one of ours, and the router refuses it.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return memberName(quoted[1 : len(quoted)-1])
	}
	name, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil && len(name) == 0 {
		return string(quoted)
	}
	return string(name)
}

// memberName is string(b), without an allocation for the names that come with
// every open and bind.
func memberName(b []byte) string {
	switch string(b) {
	case "op":
		return "op"
	case "kind":
		return "kind"
	case "module_id":
		return "module_id"
	case "target":
		return "target"
	case "identity":
		return "identity"
	case "project_root":
		return "project_root"
	case "harness":
		return "harness"
	case "session":
		return "session"
	case "principal":
		return "principal"
	case "scope":
		return "scope"
	case "epoch":
		return "epoch"
	case "route_channel":
		return "route_channel"
	case "route_epoch":
		return "route_epoch"
	case "consumer_identity":
		return "consumer_identity"
	case "consumer_capabilities":
		return "consumer_capabilities"
	}
	return string(b)
}

func (s *splitter) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *splitter) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// end demands that nothing but space follows.
func (s *splitter) end() error {
	s.space()
	if s.i != len(s.b) {
		return ErrNotObject
	}
	return nil
}

func (s *splitter) str() bool {
	if !s.take('"') {
		return false
	}
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			s.i++
			return true
		case '\\':
			s.i++
		}
		s.i++
	}
	return false
}

// value skips one value: a string, a bracketed run in which every bracket is
// closed, or a bare word up to the next separator.
func (s *splitter) value() bool {
	depth := 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			if !s.str() {
				return false
			}
		case '{', '[':
			depth++
			s.i++
			continue
		case '}', ']':
			depth--
			if depth < 0 {
				return false
			}
			s.i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return false
			}
			s.i++
			continue
		default:
			s.word()
		}
		if depth == 0 {
			return true
		}
	}
	return false
}

func (s *splitter) word() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', ':', ' ', '\t', '\n', '\r', '{', '}', '[', ']', '"':
			return
		}
		s.i++
	}
}
