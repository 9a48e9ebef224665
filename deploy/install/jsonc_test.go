package install

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

const (
	ours  = "/usr/local/bin/scopeward"
	front = "/run/scopeward/subc-connection.json"
)

func TestWrapModuleEditsTheCommandAndNothingElse(t *testing.T) {
	const head = `"exec", "--connection-file", "/run/scopeward/subc-connection.json", "--", "/opt/echo"`
	for _, tc := range []struct{ name, text, want string }{
		{"arguments",
			`{"modules": {"echo": {"program": "/opt/echo", "args": ["-v"]}}}`,
			`{"modules": {"echo": {"program": "/usr/local/bin/scopeward", "args": [` + head + `,"-v"]}}}`},
		{"no arguments",
			`{"modules": {"echo": {"args": [], "program": "/opt/echo"}}}`,
			`{"modules": {"echo": {"args": [` + head + `], "program": "/usr/local/bin/scopeward"}}}`},
		{"no list of arguments",
			`{"modules": {"echo": {"program": "/opt/echo",}}}`,
			`{"modules": {"echo": {"program": "/usr/local/bin/scopeward", "args": [` + head + `],}}}`},
		{"comments, lines and commas", `{
  // who answers
  "modules": {
    "echo": {
      "program": /* here */ "/opt/echo", // there
      "args": [
        "-v", // loud
      ],
    },
  },
}
`, `{
  // who answers
  "modules": {
    "echo": {
      "program": /* here */ "/usr/local/bin/scopeward", // there
      "args": [` + head + `,
        "-v", // loud
      ],
    },
  },
}
`},
		{"wrapped already",
			`{"modules": {"echo": {"program": "/usr/local/bin/scopeward", "args": ["exec"]}}}`,
			`{"modules": {"echo": {"program": "/usr/local/bin/scopeward", "args": ["exec"]}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := wrapModule([]byte(tc.text), "echo", ours, front)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
		})
	}
}

func TestWrapModuleSaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		`{`:                                   "is not JSON with comments",
		`{"modules": {}}`:                     `has no module "echo"`,
		`{"modules": {"echo": {"args": []}}}`: "without a program",
		`{"modules": {"echo": {"program": "/x", "args": "-v"}}}`: "are no list",
	} {
		_, err := wrapModule([]byte(text), "echo", ours, front)
		require.ErrorContains(t, err, says)
	}
}

// Wrapping and taking our part out again give back the bytes that were there,
// whatever their formatting, wherever there was a list of arguments.
func TestUnwrapAllUndoesWrapModule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t", " /* c */ ", " // c\n  "})
		word := rapid.SampledFrom([]string{`"-v"`, `"--"`, `"a b"`, `"\u00e9\""`, `""`})
		list, comma := "[", ""
		for range rapid.IntRange(0, 3).Draw(t, "args") {
			list += comma + space.Draw(t, "space") + word.Draw(t, "word") + space.Draw(t, "space")
			comma = ","
		}
		if comma != "" && rapid.Bool().Draw(t, "trailing") {
			list += ","
		}
		list += "]"
		text := `{"modules":` + space.Draw(t, "space") + `{"other": {"program": "/o", "args": ["x"]}, "a/b":{` + space.Draw(t, "space") +
			`"program":` + space.Draw(t, "space") + `"/opt/echo"` + space.Draw(t, "space") + `, "args":` + space.Draw(t, "space") + list + `}}}`
		edited, err := wrapModule([]byte(text), "a/b", ours, front)
		require.NoError(t, err)
		_, err = hujson.Parse(edited)
		require.NoError(t, err, "%s", edited)
		require.Contains(t, string(edited), ours)

		again, err := wrapModule(edited, "a/b", ours, front)
		require.NoError(t, err)
		require.Equal(t, string(edited), string(again))

		plain, err := unwrapAll(edited, ours)
		require.NoError(t, err)
		require.Equal(t, text, string(plain))
	})
}
