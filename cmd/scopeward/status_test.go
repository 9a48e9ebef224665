package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/sidecar/operator/api"
)

func TestStatusSaysWhatBecameOfTheConfiguration(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	for says, c := range map[string]api.Config{
		"as at the start":  {},
		"reloaded 10s ago": {ReloadedAtMS: ago(10 * time.Second)},
		"reloaded 2m00s ago; CHANGED, and waits for a restart: listen, scopes": {
			ReloadedAtMS: ago(2 * time.Minute), Waiting: []string{"listen", "scopes"}},
		"as at the start; REFUSED 1s ago: a.jsonc:1:2: is not JSON": {
			RefusedAtMS: ago(time.Second), Fault: "a.jsonc:1:2: is not JSON"},
	} {
		var out strings.Builder
		s := newSheet(&out)
		s.now = now
		showStatus(s, api.Status{Config: c})
		require.NoError(t, s.flush())
		require.Contains(t, out.String(), "configuration  "+says+"\n")
	}
}
