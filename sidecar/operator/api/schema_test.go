package api

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// Every path of the description has its constant, and every constant its path.
func TestPathsAreTheDescriptions(t *testing.T) {
	var d struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(Description, &d))
	require.Equal(t, "3.1.0", d.OpenAPI)
	got := map[string]bool{}
	for path := range d.Paths {
		got[path] = true
	}
	want := map[string]bool{}
	for _, path := range []string{PathStatus, PathHealth, PathScopes, PathRoutes, PathLaunches, PathRefusals, PathExplain, PathDrain, PathEvents, PathLedger, PathDescription, PathMetrics} {
		want[path] = true
	}
	require.Equal(t, want, got)
	require.Contains(t, d.Paths[PathDrain], "post")
}
