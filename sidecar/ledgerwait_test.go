package sidecar

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Answers wait for the disk as long as the configuration says: in a minute it is
// done, however busy it is.
func TestAnAnswerWaitsForTheDiskAsConfigured(t *testing.T) {
	r := ledgerRig(t, false)
	r.cfg.Ledger.WaitMS = 60_000
	router, s := r.startBoth("owner")
	m := r.owner(router.Launch("owner"))
	for generation := range uint64(5) {
		m.Sync(1+generation, head("a", 1+generation)).OK()
	}
	require.Zero(t, s.ledger.Stats().Late)
}
