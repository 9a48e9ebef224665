package admission

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestS4_CapabilitiesAreReadFromProvides(t *testing.T) {
	for raw, want := range map[string][]Capability{
		``:                  nil,
		`null`:              nil,
		`{}`:                nil,
		`{"provides":null}`: nil,
		`{"provides":[]}`:   nil,
		` {"provides":["b/v1","a/v1"],"requires":[{"x":1}],"must_never_reach":["call-modes/v1"]} `: {"a/v1", "b/v1"},
		`{"provides":["call-modes/v1","call-modes/v1"]}`:                                           {CallModes},
	} {
		have, err := ParseCapabilities([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, NewCapabilities(want...), have, raw)
		require.Len(t, have.Sorted(), len(want))
		for _, c := range want {
			require.True(t, have.Has(c))
		}
	}
}

func TestS4_CapabilitiesThatCannotBeReadProvideNothing(t *testing.T) {
	for _, raw := range []string{
		`[]`, `[["call-modes/v1"]]`, `"call-modes/v1"`, `1`, `true`, `{`, `{"provides":"call-modes/v1"}`,
		`{"provides":{"call-modes/v1":true}}`, `{"provides":["call-modes/v1",null]}`, `{"provides":["call-modes/v1",1]}`,
		`{"provides":["call-modes/v1"],"provides":[]}`, `{"provides":["call-modes/v1"]} {}`, "{\"provides\":[\"call-modes/v1\",\"\xff\"]}", ` `,
	} {
		have, err := ParseCapabilities([]byte(raw))
		require.ErrorIs(t, err, ErrCapabilities, raw)
		require.False(t, have.HasCallModes(), raw)
	}
}

// ADR-0134: a set serializes sorted, whatever order it came in.
func TestADR0134_CapabilitiesSerializeSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := []Capability{"a/v1", "a/v10", "a/v2", CallModes}
		shuffled := rapid.Permutation(sorted).Draw(t, "order")
		twice := append(shuffled, rapid.SampledFrom(sorted).Draw(t, "again"))
		b, err := json.Marshal(NewCapabilities(twice...))
		require.NoError(t, err)
		require.Equal(t, `["a/v1","a/v10","a/v2","call-modes/v1"]`, string(b))
	})
	b, err := json.Marshal(Capabilities{})
	require.NoError(t, err)
	require.Equal(t, `[]`, string(b))
}
