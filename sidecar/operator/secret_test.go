package operator

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// No answer of the API and no metric holds a proof's hash, in any form.
func TestNoAnswerHoldsAProofsHash(t *testing.T) {
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	s.proxy.evicted = func(proxy.ConnID, func(table.ScopeID) bool) int { return 0 }
	raw, err := hex.DecodeString(testProofHash)
	require.NoError(t, err)
	for path, e := range s.Server.endpoints() {
		query := ""
		switch path {
		case api.PathEvents: // each event is a decision's, and a decision holds none
			continue
		case api.PathExplain:
			query = "?owner=core&ref=good&epoch=1&as=direct&to=tool"
		}
		status, body := s.raw(t, e.method, path+query, `{"conn":1,"why":"x"}`)
		require.Equal(t, 200, status, "%s: %s", path, body)
		require.NotContains(t, string(body), testProofHash, path)
		require.NotContains(t, string(body), string(raw), path)
		require.NotContains(t, string(body), "bind_proof_sha256", path)
	}
}
