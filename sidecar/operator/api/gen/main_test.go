package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed types are what the description makes today.
func TestTypesAreTheDescriptions(t *testing.T) {
	data, err := os.ReadFile("../openapi.json")
	require.NoError(t, err)
	want, err := render(data)
	require.NoError(t, err)
	got, err := os.ReadFile("../schema.go")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go generate ./sidecar/operator/api")
}

func TestRenderRefuses(t *testing.T) {
	for text, says := range map[string]string{
		`{`: "EOF",
		`{"components":{"schemas":{"A":{"type":"string"}}}}`:                                       "no object",
		`{"components":{"schemas":{"A":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`: "no Go type",
		`{"components":{"schemas":{"A":{"type":"object","properties":{"n":{"type":"array"}}}}}}`:   "no Go type",
		`{"components":{"schemas":{"A":{"type":"object","properties":{"n":{"type":"number"}}}}}}`:  "no Go type",
	} {
		_, err := render([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}
