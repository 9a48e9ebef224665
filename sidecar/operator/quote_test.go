package operator

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"session-1":               "session-1",
		"":                        `""`,
		"a b":                     `"a b"`,
		"a\nlevel=error":          `"a\nlevel=error"`,
		"\x1b[31mred":             `"\x1b[31mred"`,
		`say "hi"`:                `"say \"hi\""`,
		`back\slash`:              `"back\\slash"`,
		"ümlaut":                  `"\u00fcmlaut"`,
		"\xff":                    `"\xff"`,
		strings.Repeat("x", 64):   strings.Repeat("x", 64),
		strings.Repeat("x", 65):   `"` + strings.Repeat("x", 64) + `"...`,
		strings.Repeat("ü", 1000): `"` + strings.Repeat(`\u00fc`, 64) + `"...`,
	} {
		require.Equal(t, want, Quote(in))
	}
}

// No name can put more than printable ASCII into a line, however long it is.
func TestQuoteOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Quote(rapid.String().Draw(t, "name"))
		require.True(t, utf8.ValidString(q))
		require.NotContains(t, q, "\n")
		for _, r := range q {
			require.Truef(t, r >= ' ' && r < 0x7f, "%q", q)
		}
		require.LessOrEqual(t, len(q), 64*10+5)
	})
}
