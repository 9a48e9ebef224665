package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// FuzzScanner compares with jsontext: the same texts are JSON, and their strings
// hold the same.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		``, ` `, `{}`, ` { } `, `[]`, `[1,]`, `[,1]`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{1:2}`, `[1 2]`, `[[]}`, `{"a":[{"b":null}]}`,
		`{"a":1,"a":{"a":2,"a":3}}`, `"\ud800"`, `"\ud83d\ude00"`, `"\ud83d\u0041"`, `"\u00e4ä"`, "\"\xff\"", "\"\x1f\"", `"\x"`, `"\u12"`, `"`, `"\`, `"a" "b"`,
		`0`, `-0`, `01`, `-`, `1.`, `.1`, `1.5e+7`, `1e`, `1E5`, `+1`, `1e5.5`, `true`, `tru`, `truex`, `nul`, `null null`, "\ufeff1", "\v1",
		strings.Repeat("[", 9999) + strings.Repeat("]", 9999), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanner{text: string(text)}
		err := s.skip()
		s.space()
		valid := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
		require.Equal(t, valid, err == nil && s.at == len(text), "%q", text)
		if !valid || !strings.HasPrefix(strings.TrimSpace(string(text)), `"`) {
			return
		}
		want, err := jsontext.AppendUnquote(nil, strings.TrimSpace(string(text)))
		require.NoError(t, err)
		got, err := newReader(string(text)).string()
		require.NoError(t, err)
		require.Equal(t, string(want), got)
	})
}

// FuzzRecordsApart compares a long list's reading with a short one's: the same
// records, or the same words for what is wrong.
func FuzzRecordsApart(f *testing.F) {
	f.Add([]byte(`{"ref":"a","scope_epoch":1,"kind":"head"} , {"scope_epoch":2,"ref":"b","kind":"worker"}`), 1)
	f.Add([]byte(`{"ref":"a","scope_epoch":1,"kind":"head"},`), 0)
	f.Add([]byte(`{"ref":"a\"}","scope_epoch":1,"kind":"head","carriers":[{"principal":{"kind":"direct"},"targets":["a","b"]},{"principal":{"kind":"direct"}}]}`), 9)
	f.Add([]byte(`{"ref":"a","scope_epoch":1,"kind":"head","x":[}]}`), 20)
	f.Add([]byte(`{"ref":"ä","scope_epoch":1,"kind":"head"}{}`), 2)
	f.Add([]byte(`[]`), 3)
	f.Fuzz(func(t *testing.T, records []byte, before int) {
		good := strings.Join(repeat(min(max(before, 0), 30), func(i int) string {
			return fmt.Sprintf(`{"ref":"r%d","scope_epoch":1,"kind":"head","attributes":{"agent_id":"a"}},`, i)
		}), "")
		body := []byte(`{"generation":1,"scopes":[` + good + string(records) + `]}`)
		read := func(view bool) (*call, *Refusal) {
			c := &call{op: opSync, full: true}
			r := newReader(string(body))
			r.view = view
			if err := c.decode(r, syncMembers); err != nil {
				return nil, malformed(err)
			}
			return c, nil
		}
		want, refused := read(false)
		got, refusedToo := read(true)
		require.Equal(t, refused, refusedToo, "%s", body)
		if refused != nil {
			return
		}
		require.Equal(t, want.body, got.body)
		require.Equal(t, want.results, got.results)
		require.Len(t, got.entries, len(want.entries))
		for i, e := range got.entries {
			require.Equal(t, want.entries[i].record, e.record)
			require.Equal(t, want.entries[i].contradiction, e.contradiction)
			require.Equal(t, want.entries[i].targetsInvalid, e.targetsInvalid)
			require.Equal(t, want.entries[i].onlyIfIdle, e.onlyIfIdle)
		}
	})
}

// FuzzAppendString compares with jsontext: what needs no escape is written without.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", `a"b`, `a\b`, "a\nb", "a\x7fb", "ä", "\u2028", "a\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, _ := jsontext.AppendQuote(nil, s)
		require.Equal(t, string(want), string(appendString(nil, s)))
	})
}
