package operator

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how many characters of a name that a caller chose a line shows.
const maxQuoted = 64

// Quote makes a name that a caller chose fit for a log line or a terminal: in
// quotes and escaped unless it is plain, and cut to 64 characters.
func Quote(s string) string {
	n, plain := 0, s != ""
	for i, r := range s {
		if n == maxQuoted {
			return strconv.QuoteToASCII(s[:i]) + "..."
		}
		n++
		if r <= ' ' || r >= utf8.RuneSelf-1 || r == '"' || r == '\\' {
			plain = false
		}
	}
	if plain {
		return s
	}
	return strconv.QuoteToASCII(s)
}
