package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"scopeward/table"
)

const goodSelector = `"owner":{"kind":"reserved","module_id":"core"},"ref":"s","scope_epoch":1`

func TestS4_ASelectorIsReadWithItsOptionalMembersAbsentOrNull(t *testing.T) {
	base := Selector{Owner: core, Ref: "s"}
	with := func(change func(*Selector)) Selector {
		s := base
		change(&s)
		return s
	}
	owner := `"owner":{"kind":"reserved","module_id":"core"}`
	for raw, want := range map[string]Selector{
		`{` + owner + `,"ref":"s"}`:                                           base,
		`{` + owner + `,"ref":"s","scope_epoch":null,"bind_proof":null}`:      base,
		`{"ref":"s","hold_presence":false,` + owner + `}`:                     base,
		`{` + owner + `,"ref":"s","hold_presence":true}`:                      with(func(s *Selector) { s.HoldPresence = true }),
		`{` + owner + `,"ref":"s","scope_epoch":0}`:                           with(func(s *Selector) { s.Epoch = ptr(uint64(0)) }),
		`{` + owner + `,"ref":"s","scope_epoch":18446744073709551615}`:        with(func(s *Selector) { s.Epoch = ptr(uint64(1<<64 - 1)) }),
		`{` + owner + `,"ref":"s","bind_proof":"not base64, and not judged"}`: with(func(s *Selector) { s.BindProof = ptr("not base64, and not judged") }),
		` { "r\u0065f" : "" , ` + owner + ` } `:                               with(func(s *Selector) { s.Ref = "" }),
		`{"owner":{"kind":"direct"},"ref":"s"}`:                               with(func(s *Selector) { s.Owner = direct }),
		`{"owner":{"kind":"unverified"},"ref":"s"}`:                           with(func(s *Selector) { s.Owner = table.Principal{Kind: table.Unverified} }),
	} {
		have, err := ParseSelector([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, want, have, raw)
	}
}

func TestS4_AMalformedSelectorIsRefusedNamingTheMemberAndNeverItsValue(t *testing.T) {
	for raw, member := range map[string]string{
		``: "", `null`: "", `false`: "", `5`: "", `"core/s"`: "", `[]`: "", `[{"kind":"direct"},"s",1]`: "",
		`{`: "", `{"ref":01}`: "ref", `{"scope_epoch":01}`: "", `{"bind_proof":nul`: "", `{"ref"}`: "ref", `{` + goodSelector: "", `{` + goodSelector + `} x`: "", `{` + goodSelector + `}{}`: "",
		"{" + goodSelector + ",\"bind_proof\":\"\xff\"}": "bind_proof",
		`{` + goodSelector + `,"bind_proof":"\ud800"}`:   "bind_proof",
		`{}`:          "owner",
		`{"ref":"s"}`: "owner",
		`{"owner":{"kind":"reserved","module_id":"core"}}`:                        "ref",
		`{"owner":"reserved:core","ref":"s"}`:                                     "owner",
		`{"owner":null,"ref":"s"}`:                                                "owner",
		`{"owner":["reserved","core"],"ref":"s"}`:                                 "owner",
		`{"owner":{},"ref":"s"}`:                                                  "owner",
		`{"owner":{"kind":"reserved"},"ref":"s"}`:                                 "owner",
		`{"owner":{"kind":"reserved","module_id":"core","x":1},"ref":"s"}`:        "owner",
		`{"owner":{"kind":"direct","module_id":"core"},"ref":"s"}`:                "owner",
		`{"owner":{"kind":"Reserved","module_id":"core"},"ref":"s"}`:              "owner",
		`{"owner":{"kind":"reserved","kind":"direct","module_id":"c"},"ref":"s"}`: "owner",
		`{"owner":{"kind":"reserved","module_id":null},"ref":"s"}`:                "owner",
		`{"owner":{"kind":"direct"},"ref":5}`:                                     "ref",
		`{"owner":{"kind":"direct"},"ref":null}`:                                  "ref",
		`{"owner":{"kind":"direct"},"ref":["s"]}`:                                 "ref",
		`{` + goodSelector + `,"bind_proof":5}`:                                   "bind_proof",
		`{` + goodSelector + `,"bind_proof":["x"]}`:                               "bind_proof",
		`{` + goodSelector + `,"hold_presence":null}`:                             "hold_presence",
		`{` + goodSelector + `,"hold_presence":"yes"}`:                            "hold_presence",
		`{` + goodSelector + `,"hold_presence":1}`:                                "hold_presence",
		`{` + goodSelector + `,"x":1}`:                                            "x",
		`{` + goodSelector + `,"Ref":"t"}`:                                        "Ref",
		`{` + goodSelector + `,"kind":"head"}`:                                    "kind",
		`{` + goodSelector + `,"scope_epoch":1}`:                                  "",
		`{` + goodSelector + `,"scope\u005fepoch":2}`:                             "",
		`{` + goodSelector + `,"ref":"s"}`:                                        "",
	} {
		requireMalformed(t, raw, member)
	}
	for _, epoch := range []string{`"1"`, `-1`, `-0`, `1.0`, `1e0`, `18446744073709551616`, `true`, `[1]`} {
		requireMalformed(t, `{"owner":{"kind":"direct"},"ref":"s","scope_epoch":`+epoch+`}`, "scope_epoch")
	}
}

func requireMalformed(t *testing.T, raw, member string) {
	t.Helper()
	s, err := ParseSelector([]byte(raw))
	var malformed *SelectorError
	require.ErrorAs(t, err, &malformed, raw)
	require.Equal(t, member, malformed.Member, raw)
	require.Equal(t, Selector{}, s, raw)
}

func TestS4_AMalformedSelectorsErrorHoldsNoValue(t *testing.T) {
	proof, _ := secret(4)
	for _, raw := range []string{
		`{` + goodSelector + `,"bind_proof":["` + proof + `"]}`,
		`{` + goodSelector + `,"bind_proof":"` + proof + `","bind_proof":"` + proof + `"}`,
		`{` + goodSelector + `,"bind_proof":"` + proof + "\x01" + `"}`,
		`{` + goodSelector + `,"bind_proof":"` + proof + `","x":"` + proof + `"}`,
		`{"owner":"` + proof + `"}`,
		`{"ref":"` + proof,
		`"` + proof + `"`,
	} {
		_, err := ParseSelector([]byte(raw))
		require.Error(t, err)
		require.NotContains(t, err.Error(), proof[:8])
	}
	_, err := ParseSelector([]byte(`{"` + strings.Repeat("n", 1000) + `":1}`))
	require.Less(t, len(err.Error()), 120)
	_, err = ParseSelector([]byte(`{"a\nb":1}`))
	require.Contains(t, err.Error(), `"a\nb"`)
}

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{
		`{` + goodSelector + `}`, `{` + goodSelector + `,"bind_proof":"x","hold_presence":true}`,
		`{` + goodSelector + `,"scope_epoch":2}`, `{"owner":{"kind":"direct"},"ref":"\ud800"}`, `null`, `[]`, ``, `{"scope_epoch":nul`,
		`{"owner":{"kind":"reserved","module_id":null},"ref":""}`, `{` + goodSelector + `,"hold_presence":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := ParseSelector(raw)
		if err != nil {
			require.IsType(t, &SelectorError{}, err)
			require.Equal(t, Selector{}, s)
			return
		}
		// What is accepted is one JSON object without repeats, and says exactly what
		// was read: rendered again from what was read, it reads the same.
		require.True(t, jsontext.Value(raw).IsValid())
		require.Equal(t, jsontext.Kind('{'), jsontext.Value(raw).Kind())
		again, err := ParseSelector([]byte(render(s)))
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}

func render(s Selector) string {
	str := func(v string) string {
		b, err := jsontext.AppendQuote(nil, v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	owner := `{"kind":` + str(s.Owner.Kind.String())
	if s.Owner.Reserved() {
		owner += `,"module_id":` + str(s.Owner.ModuleID)
	}
	out := `{"owner":` + owner + `},"ref":` + str(s.Ref)
	if s.Epoch != nil {
		out += fmt.Sprintf(`,"scope_epoch":%d`, *s.Epoch)
	}
	if s.BindProof != nil {
		out += `,"bind_proof":` + str(*s.BindProof)
	}
	return out + fmt.Sprintf(`,"hold_presence":%t}`, s.HoldPresence)
}
