package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"scopeward/table"
)

func TestAnEndedEpochStaysEndedAcrossRestarts(t *testing.T) {
	r := openRig(t, newRigPath(t), true)
	expiring := fmt.Sprintf(`{"ref":"late","scope_epoch":4,"kind":"worker","expires_at_ms":%d}`, began+10)
	r.sync("core", record("a", 1), record("b", 1), record("c", 1), expiring)
	r.sync("other", record("a", 1))
	r.apply("core", nil, "a@1")               // by name
	r.apply("core", []string{record("b", 2)}) // replaced
	r.at(began + 10)
	r.table.Sweep(r.clock())
	r.sync("core", record("b", 2)) // c is omitted

	again := []string{record("a", 1), record("b", 1), record("c", 1), record("late", 4), record("a", 2)}
	want := [][]string{{"scope_epoch_ended"}, {"scope_epoch_ended"}, {"scope_epoch_ended"}, {"scope_expired"}, {"created"}}
	for _, restart := range []func(){r.incarnate, r.restart} { // of the router, of the sidecar
		restart()
		r.sync("core")
		for i, rec := range again {
			require.Equal(t, want[i], outcomes(r.apply("core", []string{rec})), "%s", rec)
		}
		require.Equal(t, []string{"created"}, outcomes(r.sync("other", record("a", 1))), "another owner's ref")
		again, want = again[:4], want[:4]
	}
}

func TestS6_WithoutTombstonesARestartForgetsThem(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1))
	r.sync("core")
	require.Equal(t, []string{"scope_epoch_ended"}, outcomes(r.apply("core", []string{record("a", 1)})))
	r.restart()
	require.Nil(t, r.Remembered())
	require.Equal(t, []string{"created"}, outcomes(r.sync("core", record("a", 1))))
}

func TestDescribeNeverReadsRememberedEnds(t *testing.T) {
	r := openRig(t, newRigPath(t), true)
	key := scope("core", "a", 1).Key
	r.sync("core", record("a", 1))
	r.sync("core")
	require.Equal(t, table.StatusEnded, r.table.Describe(key).Status)
	r.restart()
	require.Equal(t, table.StatusNotLive, r.table.Describe(key).Status)
	require.Equal(t, []string{"scope_epoch_ended"}, outcomes(r.sync("core", record("a", 1))))
	require.Equal(t, table.StatusNotLive, r.table.Describe(key).Status, "ended means ended in this incarnation")
}

func TestAnEndThatDidNotLastIsForgotten(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1))
	r.sync("core")
	r.restart()
	r.sync("core", record("a", 1)) // tombstones are off
	r.tombs = true
	r.restart()
	require.Equal(t, []string{"created"}, outcomes(r.sync("core", record("a", 1))))
}

func TestTheTablesBoundDoesNotForgetWhatTheLedgerRemembers(t *testing.T) {
	r := openRig(t, newRigPath(t), true)
	n := table.MaxTombstones + 100
	var all []string
	for i := range n {
		all = append(all, record(fmt.Sprint("r", i), 1))
	}
	r.sync("core", all...)
	r.sync("core")
	for _, i := range []int{0, n - 1} {
		require.Equal(t, []string{"scope_epoch_ended"}, outcomes(r.apply("core", []string{all[i]})))
	}
}

func TestTheBoundOnRememberedEndsForgetsTheOldest(t *testing.T) {
	db, err := openFile(newRigPath(t), toWrite)
	require.NoError(t, err)
	defer db.Close()
	const limit = 3
	end := func(owner string, i int) table.End {
		return table.End{ID: scope(owner, fmt.Sprint("r", i), 1), Cause: table.CauseExpired}
	}
	require.NoError(t, update(db, func(tx *bbolt.Tx) error {
		a, err := newAppender(tx, limit)
		require.NoError(t, err)
		require.NoError(t, a.end(end("other", 9), began))
		for i := range 5 {
			require.NoError(t, a.end(end("core", i), began))
		}
		return a.finish()
	}))
	var r *remembered
	require.NoError(t, view(db, func(tx *bbolt.Tx) error {
		r, err = loadRemembered(tx, limit)
		return err
	}))
	for i, want := range []bool{false, false, true, true, true} {
		_, found := r.cause(end("core", i).ID)
		require.Equal(t, want, found, "end %d", i)
	}
	_, found := r.cause(end("other", 9).ID)
	require.True(t, found, "the bound is each owner's")
	r.add(end("core", 5).ID, table.CauseOwnerEnded)
	_, found = r.cause(end("core", 2).ID)
	require.False(t, found, "memory has the same bound")
	c, _ := r.cause(end("core", 5).ID)
	require.Equal(t, table.CauseOwnerEnded, c)
}
