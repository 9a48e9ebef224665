package sidecar

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/sidecar/ledger"
	"scopeward/sidecar/operator/api"
)

func ledgerRig(t *testing.T, tombstones bool) *rig {
	r := newRig(t)
	r.cfg.Ledger.Path = filepath.Join(filepath.Dir(r.front), "ledger")
	r.cfg.Ledger.Tombstones = tombstones
	return r
}

// owner registers the owner in the name of its launch.
func (r *rig) owner(l routertest.Launch) *routertest.Module {
	r.t.Helper()
	m := routertest.DialModule(r.t, r.front)
	m.Hello("owner", routertest.Nonce(l))
	return m
}

func head(ref string, epoch uint64) routertest.Doc {
	return routertest.Doc{"ref": ref, "scope_epoch": epoch, "kind": "head"}
}

// results are the outcomes, or the codes, of an accepted call.
func results(a routertest.Reply) []string {
	var body struct {
		Results []struct {
			Outcome string `json:"outcome"`
			Code    string `json:"code"`
		} `json:"results"`
	}
	a.OK().Into(&body)
	var list []string
	for _, r := range body.Results {
		list = append(list, r.Outcome+r.Code)
	}
	return list
}

func TestAnEndSurvivesARestartOfTheSidecarAndOfTheRouter(t *testing.T) {
	for _, tombstones := range []bool{true, false} {
		r := ledgerRig(t, tombstones)
		router, s := r.startBoth("owner")
		m := r.owner(router.Launch("owner"))
		m.Sync(1, head("a", 1), head("b", 1)).OK()
		m.Sync(2, head("b", 1)).OK()
		require.Equal(t, []string{"refusedscope_epoch_ended"}, results(m.Apply(3, []any{head("a", 1)}, nil)))

		want := []string{"refusedscope_epoch_ended", "created"}
		if !tombstones {
			want = []string{"created", "created"}
		}
		r.stop(s)
		r.released(router, "owner")
		s = r.start()
		r.attached(s)
		l := router.Launch("owner")
		m = r.owner(l)
		require.Equal(t, want, results(m.Sync(1, head("a", 1), head("b", 1))))
		require.Equal(t, "live", m.Describe("owner", "b").OK().Text("status"))
		if tombstones {
			require.Equal(t, "not_live", m.Describe("owner", "a").OK().Text("status"), "ended means ended in this incarnation")
		}

		gone := r.attached(s).Incarnation
		router.Close()
		router = r.startRouter("owner")
		r.reattached(s, gone)
		m = r.owner(router.Launch("owner"))
		require.Equal(t, want, results(m.Sync(1, head("a", 1), head("b", 1))))
		r.stop(s)

		v, err := ledger.OpenView(r.cfg.Ledger.Path)
		require.NoError(t, err)
		report, err := v.Verify()
		require.NoError(t, err)
		require.NoError(t, v.Close())
		require.True(t, report.Sound())
		entries := map[bool]uint64{true: 3, false: 4} // a, b, the end of a, and a again
		require.Equal(t, entries[tombstones], report.Entries, "what was re-sent unchanged added nothing")
	}
}

func TestTheLedgerOfARunningSidecarIsReadByItsAPI(t *testing.T) {
	r := ledgerRig(t, false)
	client := api.NewClient(r.cfg.Operator.Socket)
	defer client.Close()
	router, s := r.startBoth("owner")
	m := r.owner(router.Launch("owner"))
	m.Sync(1, head("a", 1), head("b", 1)).OK()
	m.Sync(2, head("b", 1)).OK()
	_, err := ledger.OpenView(r.cfg.Ledger.Path)
	require.ErrorIs(t, err, ledger.ErrInUse)
	eventually(t, "the disk", func() bool { return s.ledger.Stats().Queued == 0 })

	f, err := os.OpenFile(filepath.Join(t.TempDir(), "copy"), os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, client.Ledger(t.Context(), f))
	require.NoError(t, f.Close())
	v, err := ledger.OpenView(f.Name())
	require.NoError(t, err)
	defer v.Close()
	report, err := v.Verify()
	require.NoError(t, err)
	require.True(t, report.Sound())
	require.Equal(t, uint64(3), report.Entries)
	r.stop(s)

	r.cfg.Ledger.Path = ""
	r.start()
	require.ErrorContains(t, client.Ledger(t.Context(), io.Discard), "no ledger is kept")
}

func TestALedgerThatCannotBeOpenedIsSaid(t *testing.T) {
	r := ledgerRig(t, false)
	require.NoError(t, os.MkdirAll(filepath.Dir(r.front), 0o700))
	require.NoError(t, os.WriteFile(r.cfg.Ledger.Path, []byte("no ledger at all, and not even an empty file"), 0o600))
	_, err := r.try()
	require.ErrorIs(t, err, ledger.ErrNotLedger)
	require.ErrorContains(t, err, `"ledger.path": `)
	require.NoError(t, os.Remove(r.cfg.Ledger.Path))
	r.start()
}
