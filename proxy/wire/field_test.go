package wire

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestTextIsWhatADecoderReads(t *testing.T) {
	for raw, want := range map[string]string{`""`: "", `"a b"`: "a b", `"\u0061\n"`: "a\n", `"é"`: "é", `"\ud83d\ude00"`: "😀"} {
		s, ok := Text(jsontext.Value(raw))
		require.True(t, ok, raw)
		require.Equal(t, want, s, raw)
	}
	for _, raw := range []string{``, `"`, `a`, `1`, `null`, `["a"]`, "\"\xff\"", "\"\n\"", `"\ud800"`, `"\x"`} {
		_, ok := Text(jsontext.Value(raw))
		require.False(t, ok, raw)
	}
}

func TestFieldsOfTheirTypeOnly(t *testing.T) {
	f := ReadFields(jsontext.Value(`{"s":"x","s":"y","n":65535,"null":null,"o":{"k":"v"}}`))
	require.Equal(t, "y", f.Text("s"), "the last one counts")
	require.Equal(t, uint64(65535), f.Uint("n", 16))
	require.Equal(t, "", f.Text("absent"))
	require.Equal(t, "", f.Text("null"))
	require.Zero(t, f.Uint("null", 16))
	child := f.Child("o")
	require.Equal(t, "v", child.Text("k"))
	require.True(t, f.OK && child.OK)
	absent := f.Child("absent")
	require.False(t, absent.OK)

	for _, raw := range []string{`65536`, `-1`, `1.0`, `1e2`, `"1"`, `01`, `+1`, `[]`} {
		f := ReadFields(jsontext.Value(`{"n":` + raw + `}`))
		f.Uint("n", 16)
		require.False(t, f.OK, raw)
	}
	for _, raw := range []string{`1`, `{}`, `true`} {
		f := ReadFields(jsontext.Value(`{"s":` + raw + `}`))
		f.Text("s")
		require.False(t, f.OK, raw)
	}
	list := ReadFields(jsontext.Value(`["s"]`))
	require.False(t, list.OK)
}
