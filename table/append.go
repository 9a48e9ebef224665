package table

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// appendString appends s as a JSON string with as few escapes as JSON allows.
// Bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			b, _ = jsontext.AppendQuote(b, s)
			return b
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendUint(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) }

// appendArray appends a JSON array of elements in the order that they have.
func appendArray[E any](b []byte, elements []E, element func(E, []byte) []byte) []byte {
	b = append(b, '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(e, b)
	}
	return append(b, ']')
}

// appendObject appends an object. Its members are written by fields, each with
// a leading comma; the first comma is dropped.
func appendObject(b []byte, fields func([]byte) []byte) []byte {
	open := len(b)
	b = fields(append(b, '{'))
	if len(b) > open+1 && b[open+1] == ',' {
		b = append(b[:open+1], b[open+2:]...)
	}
	return append(b, '}')
}
