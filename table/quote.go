package table

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how many characters of a caller's name a text of ours holds.
const maxQuoted = 64

// QuoteName makes a name that a caller chose fit for a message or a log line:
// quoted, escaped and cut to 64 characters, so that it can forge neither a line
// nor the rest of a message, nor fill one.
func QuoteName(s string) string {
	n := 0
	for i := range s {
		if n == maxQuoted {
			return strconv.Quote(s[:i]) + "..."
		}
		n++
	}
	return strconv.Quote(s)
}

// plainName is s as it is when it is a short token, else quoted.
func plainName(s string) string {
	if s == "" || len(s) > maxQuoted || !utf8.ValidString(s) {
		return QuoteName(s)
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return QuoteName(s)
		}
	}
	return s
}
