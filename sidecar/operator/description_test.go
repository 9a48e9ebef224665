package operator

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/sidecar/operator/api"
)

// apiDocument is what of the description the server must be equal to.
type apiDocument struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name string `json:"name"`
		} `json:"parameters"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]struct {
				Enum []string `json:"enum"`
			} `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

// The server serves exactly the paths, methods and parameters of the description.
func TestServerIsAsDescribed(t *testing.T) {
	var d apiDocument
	require.NoError(t, json.Unmarshal(api.Description, &d))
	s := newTestServer(t)
	endpoints := s.Server.endpoints()
	require.Len(t, endpoints, len(d.Paths))
	for path, methods := range d.Paths {
		e, ok := endpoints[path]
		require.True(t, ok, path)
		require.Len(t, methods, 1, path)
		for method, op := range methods {
			require.Equal(t, e.method, map[string]string{"get": "GET", "post": "POST"}[method], path)
			var names []string
			for _, p := range op.Parameters {
				names = append(names, p.Name)
			}
			require.ElementsMatch(t, names, e.params, path)
		}
	}
	kinds := d.Components.Schemas["Event"].Properties["kind"].Enum
	require.ElementsMatch(t, kinds, eventKinds())
	for _, k := range kinds {
		_, text := wording(k)
		require.NotEqual(t, "decided", text, "%s has no wording", k)
	}
	steps := d.Components.Schemas["Step"].Properties
	require.ElementsMatch(t, steps["name"].Enum, []string{stepAccept, stepHandshake, stepDescribe, stepTable, stepAttribute})
	require.ElementsMatch(t, steps["state"].Enum, []string{stepOK, stepFailed, stepAbsent})
	codes := d.Components.Schemas["Explanation"].Properties["verdict"].Enum
	require.True(t, slices.Contains(codes, "admitted") && slices.Contains(codes, "refused"))
}

// The description that is served is the one that the client was made from.
func TestDescriptionIsServed(t *testing.T) {
	s := newTestServer(t)
	status, body := s.raw(t, "GET", api.PathDescription, "")
	require.Equal(t, 200, status)
	require.Equal(t, string(api.Description), string(body))
}
