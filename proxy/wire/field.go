package wire

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Text decodes a JSON string, and says whether raw is one.
func Text(raw jsontext.Value) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if in := raw[1 : len(raw)-1]; plain(in) {
		return string(in), true
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// plain reports whether the inside of a string literal is the string itself.
func plain(in []byte) bool {
	ascii := true
	for _, c := range in {
		if c < ' ' || c == '\\' || c == '"' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(in)
}

// Fields reads members of an object one after another. OK stays true as long as
// each was of the type it was read as; one that is absent or null is the type's
// zero value. Of repeated members the last one counts.
type Fields struct {
	Object
	OK bool
}

// ReadFields reads raw as an object. OK is false when it is none.
func ReadFields(raw jsontext.Value) Fields {
	o, err := ParseObject(raw)
	return Fields{o, err == nil}
}

// Text reads a string.
func (f *Fields) Text(name string) string {
	raw, ok := f.Get(name)
	if !ok || IsNull(raw) {
		return ""
	}
	s, ok := Text(raw)
	f.OK = f.OK && ok
	return s
}

// Uint reads a number of at most bits bits.
func (f *Fields) Uint(name string, bits int) uint64 {
	raw, ok := f.Get(name)
	if !ok || IsNull(raw) {
		return 0
	}
	n, err := strconv.ParseUint(string(raw), 10, bits)
	f.OK = f.OK && err == nil && raw[0] != '+' && (raw[0] != '0' || len(raw) == 1)
	return n
}

// Child reads an object, which must be there.
func (f *Fields) Child(name string) Fields {
	raw, ok := f.Get(name)
	if !ok {
		return Fields{}
	}
	return ReadFields(raw)
}

// IsNull reports whether raw is JSON's null.
func IsNull(raw jsontext.Value) bool {
	return string(bytes.TrimSpace(raw)) == "null"
}
