package wire

import "bytes"

// LeadingOp is the op of a body whose op stands in front of every list and object
// in it, "" for another. The rest of the body is not read: it may name another op,
// or be no JSON at all.
func LeadingOp(body []byte) string {
	s := splitter{b: body}
	s.space()
	if !s.take('{') {
		return ""
	}
	for {
		s.space()
		start := s.i
		if !s.str() {
			return ""
		}
		name := s.b[start:s.i]
		s.space()
		if !s.take(':') {
			return ""
		}
		s.space()
		start = s.i
		if start == len(s.b) || s.b[start] == '{' || s.b[start] == '[' || !s.value() {
			return ""
		}
		if string(name) == `"op"` {
			return string(bytes.Trim(s.b[start:s.i], `"`))
		}
		s.space()
		if !s.take(',') {
			return ""
		}
	}
}
