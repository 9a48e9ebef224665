package e2e

import (
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// TestExec_Image: what the router shows of a module behind exec is what the
// README says.
func TestExec_Image(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]module{idEcho: {program: progEcho}})
	w.start()
	admin := w.admin()
	type image struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	}
	unconfirmed := image{"unavailable", "process_identity_unconfirmed"}

	list := decode[struct {
		Modules []struct {
			PendingReload struct {
				Path  image `json:"path"`
				Image image `json:"image"`
			} `json:"pending_reload"`
		} `json:"modules"`
	}](t, admin.request(object{"op": wire.OpSupervisorList}))
	require.Len(t, list.Modules, 1)
	require.Equal(t, "match", list.Modules[0].PendingReload.Path.Status)
	require.Equal(t, unconfirmed, list.Modules[0].PendingReload.Image)

	provenance := decode[struct {
		Modules []struct {
			Observed struct {
				PID         int    `json:"pid"`
				SpawnedFrom string `json:"spawned_from"`
				Image       image  `json:"running_image"`
			} `json:"daemon_observed"`
		} `json:"modules"`
	}](t, admin.request(object{"op": "supervisor.provenance"}))
	require.Len(t, provenance.Modules, 1)
	require.Equal(t, scopeward(t), provenance.Modules[0].Observed.SpawnedFrom)
	require.Equal(t, unconfirmed, provenance.Modules[0].Observed.Image)
	require.Equal(t, w.pid(idEcho), provenance.Modules[0].Observed.PID, "the process is the launch's")
}
