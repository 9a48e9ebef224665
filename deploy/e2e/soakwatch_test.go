package e2e

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// watched builds a sidecar that tells whether its table is sound, for this test.
func watched(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	path := filepath.Join(t.TempDir(), "scopeward")
	out, err := exec.CommandContext(ctx, "go", "build", "-tags=watched", "-o", path, "scopeward/cmd/scopeward").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// watch has the sidecar check its live table against itself at intervals, in the
// middle of whatever is under way.
func (s *soak) watch(ctx context.Context, fail func(error)) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket())
		},
	}}
	defer client.CloseIdleConnections()
	for tick := time.Tick(lookEvery); ctx.Err() == nil; <-tick {
		if err := s.look(&client); err != nil {
			fail(err)
			return
		}
	}
}

func (s *soak) look(client *http.Client) error {
	answer, err := client.Get("http://scopeward/v1/watched/invariants")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var table struct {
		Watched bool     `json:"watched"`
		Broken  []string `json:"broken"`
	}
	if err := json.UnmarshalRead(answer.Body, &table); err != nil {
		return err
	}
	if !table.Watched || len(table.Broken) > 0 {
		return wrongf("the table is not sound: %+v", table)
	}
	s.looks.Add(1)
	return nil
}
