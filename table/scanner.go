package table

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner walks one JSON text, strictly: the grammar of RFC 8259, valid UTF-8 and
// no half of a surrogate pair. It reads what jsontext's decoder reads with repeated
// names allowed, and refuses what that refuses; it keeps no state but its place, and
// so costs a tenth.
type scanner struct {
	text string
	at   int
}

// maxDepth is how deep a value that is skipped may nest, as in jsontext.
const maxDepth = 10_000

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next is the byte that stands here, 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// take passes c, spaces before it, if that is what comes.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// peek is the first byte of the value that comes, and '0' for every number. It is
// 0 when none comes.
func (s *scanner) peek() byte {
	s.space()
	switch c := s.next(); c {
	case '"', '{', '[', 't', 'f', 'n':
		return c
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	}
	return 0
}

// more says whether another element follows inside a bracket that end closes. It
// passes the comma before it, or the end.
func (s *scanner) more(end byte, first bool) (bool, error) {
	switch {
	case s.take(end):
		return false, nil
	case first || s.take(','):
		return true, nil
	}
	return false, errSyntax
}

// str passes a string and returns it with its quotes, and whether it holds
// escapes.
func (s *scanner) str() (raw string, escaped bool, err error) {
	s.space()
	if s.next() != '"' {
		return "", false, errSyntax
	}
	start, plain := s.at, true
	for i := start + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			raw = s.text[start:s.at]
			if !plain && !jsontext.Value(raw).IsValid() {
				return "", false, errSyntax
			}
			return raw, escaped, nil
		case c == '\\':
			escaped, plain = true, false
			i++
		case c < ' ':
			return "", false, errSyntax
		case c >= 0x80:
			plain = false
		}
	}
	return "", false, errSyntax
}

// number passes a number and returns it.
func (s *scanner) number() (string, error) {
	start := s.at
	if s.next() == '-' {
		s.at++
	}
	if s.next() == '0' {
		s.at++
	} else if !s.digits() {
		return "", errSyntax
	}
	if s.next() == '.' {
		s.at++
		if !s.digits() {
			return "", errSyntax
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		s.at++
		if c := s.next(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return "", errSyntax
		}
	}
	return s.text[start:s.at], nil
}

// digits passes digits and says whether there is one.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > start
}

// word passes true, false or null and returns it.
func (s *scanner) word() (string, error) {
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(s.text[s.at:], w) {
			s.at += len(w)
			return w, nil
		}
	}
	return "", errSyntax
}

// scalar passes a string, a number or a word and returns its bytes.
func (s *scanner) scalar() (raw string, err error) {
	switch s.peek() {
	case '"':
		raw, _, err = s.str()
		return raw, err
	case '0':
		return s.number()
	case 't', 'f', 'n':
		return s.word()
	}
	return "", errSyntax
}

// skip passes one value, whatever it is. It does not recurse.
func (s *scanner) skip() error {
	var open []byte // the brackets that must still close
	for {
		switch k := s.peek(); k {
		case '{', '[':
			s.at++
			open = append(open, k+2)
			if len(open) > maxDepth {
				return errSyntax
			}
		default:
			if _, err := s.scalar(); err != nil {
				return err
			}
		}
		first := s.text[s.at-1] == '{' || s.text[s.at-1] == '['
		for len(open) > 0 {
			end := open[len(open)-1]
			more, err := s.more(end, first)
			if err != nil {
				return err
			}
			if more {
				if end == '}' {
					if err := s.name(); err != nil {
						return err
					}
				}
				break
			}
			open, first = open[:len(open)-1], false
		}
		if len(open) == 0 {
			return nil
		}
	}
}

// name passes a member's name and its colon.
func (s *scanner) name() error {
	if _, _, err := s.str(); err != nil {
		return err
	}
	return s.colon()
}

func (s *scanner) colon() error {
	if !s.take(':') {
		return errSyntax
	}
	return nil
}

// hop finds the end of an object by its brackets alone. It finds that of every
// valid one, and may find one for a text that is none.
func (s *scanner) hop() bool {
	depth := 0
	for i := s.at; i < len(s.text); i++ {
		switch s.text[i] {
		case '"':
			for i++; i < len(s.text) && s.text[i] != '"'; i++ {
				if s.text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth <= 0 {
				s.at = i + 1
				return depth == 0
			}
		default:
			if depth == 0 {
				return false
			}
		}
	}
	return false
}
