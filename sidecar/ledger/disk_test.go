package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"scopeward/table"
)

// fakeDisk stands before the store: it can fail, and it can hang.
type fakeDisk struct {
	mu     sync.Mutex
	err    error
	hang   chan struct{} // nil: it doesn't
	writes int
}

func (d *fakeDisk) update(db *bbolt.DB, do func(*bbolt.Tx) error) error {
	d.mu.Lock()
	d.writes++
	err, hang := d.err, d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if err != nil {
		return err
	}
	return update(db, do)
}

func (d *fakeDisk) set(err error, hang chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.hang = err, hang
}

// testWait is how long an answer waits for the disk in these tests.
const testWait = 7 * time.Millisecond

// onDisk is a rig over d, without a journal of its own to be opened again.
func onDisk(t *testing.T, d *fakeDisk, log *zap.Logger) *rig {
	r := &rig{t: t, path: newRigPath(t), now: began}
	l, err := open(Params{Path: r.path, Log: log, Now: r.clock, Wait: testWait}, d.update)
	require.NoError(t, err)
	r.Ledger = l
	r.incarnate()
	return r
}

func (r *rig) note(owner string, records ...string) *table.Applied {
	r.t.Helper()
	r.gens[owner]++
	a, refused := send(r.table, owner, syncBody(r.gens[owner], records...), r.clock())
	require.Nil(r.t, refused)
	return a
}

// elapse lets d pass on the bubble's clock.
func elapse(d time.Duration) { <-time.After(d) }

func TestAnAnswerNeverWaitsLongerThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{hang: make(chan struct{})}
		r := onDisk(t, d, zap.NewNop())
		for i := range 3 {
			start := time.Now()
			r.note("core", record("a", uint64(i+1)))
			r.Settle()
			require.Equal(t, testWait, time.Since(start))
		}
		require.Equal(t, uint64(3), r.Stats().Late)
		close(d.hang)
		r.flush()
		start := time.Now()
		r.Settle()
		require.Zero(t, time.Since(start), "nothing is waited for when all is durable")
		r.stop()
		require.Len(t, entriesOf(t, r.path), 5)
	})
}

func TestALargeChangeIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{hang: make(chan struct{})}
		r := onDisk(t, d, zap.NewNop())
		for _, c := range []struct {
			ends int
			wait time.Duration
		}{{maxAwaited, testWait}, {1, 0}} {
			ends := make([]table.End, c.ends)
			for i := range ends {
				ends[i] = table.End{ID: scope("core", fmt.Sprint(c.ends), uint64(i)), Cause: table.CauseExpired}
			}
			r.Note(ends, nil)
			start := time.Now()
			r.Settle()
			require.Equal(t, c.wait, time.Since(start))
		}
		require.Equal(t, uint64(2), r.Stats().Late)
		close(d.hang)
		r.stop()
	})
}

func TestADiskThatFailsIsLoudAndChangesNoDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		d := &fakeDisk{err: errors.New("no space left on device")}
		r := onDisk(t, d, zap.New(core))
		require.Equal(t, []string{"created"}, outcomes(r.note("core", record("a", 1))))
		synctest.Wait()
		start := time.Now()
		r.Settle()
		require.Zero(t, time.Since(start), "a disk that is known to fail is not waited for")
		require.Equal(t, []string{"updated"}, outcomes(r.note("core", record("a", 1, "x"))))
		elapse(10 * time.Second)
		s := r.Stats()
		require.True(t, s.Failing)
		require.Equal(t, uint64(4), s.Errors, "after 0, 1, 3 and 7 seconds")
		require.Equal(t, 2, s.Queued)
		require.Equal(t, 4, logs.Len())
		require.Contains(t, fmt.Sprint(logs.All()[0].ContextMap()), "no space left")

		d.set(nil, nil)
		elapse(time.Minute)
		require.False(t, r.Stats().Failing)
		require.Zero(t, r.Stats().Lost)
		r.stop()
		require.Equal(t, []string{"1 created a@1", "2 updated a@1"}, story(entriesOf(t, r.path)), "nothing was lost")
	})
}

func TestCloseTriesOnceMoreAndThenGivesUp(t *testing.T) {
	for _, healed := range []bool{true, false} {
		t.Run(fmt.Sprintf("healed %v", healed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDisk{err: errors.New("bad block")}
				r := onDisk(t, d, zap.NewNop())
				r.note("core", record("a", 1))
				synctest.Wait()
				want := 0
				if healed {
					d.set(nil, nil)
					want = 1
				}
				r.stop()
				require.Len(t, entriesOf(t, r.path), want)
				require.Equal(t, uint64(1-want), r.Stats().Lost)
				require.Zero(t, r.Stats().Queued)
			})
		})
	}
}

func TestAFullQueueLosesWhatIsNewAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		d := &fakeDisk{hang: make(chan struct{})}
		r := onDisk(t, d, zap.New(core))
		require.Equal(t, MaxQueued, r.bound)
		r.bound = 50
		r.note("core", record("first", 1))
		full := make([]table.End, r.bound-1)
		for i := range full {
			full[i] = table.End{ID: scope("core", "old", uint64(i)), Cause: table.CauseExpired}
		}
		r.Note(full, nil)
		require.Equal(t, r.bound, r.Stats().Queued)
		require.Equal(t, []string{"created", "created"}, outcomes(r.note("core", record("lost", 1), record("lost too", 1))))
		require.Equal(t, uint64(3), r.Stats().Lost, "two contents and the end of the first")
		r.Settle()
		close(d.hang)
		r.stop()
		require.Equal(t, 1, logs.FilterMessageSnippet("queue is full").Len())
		require.Len(t, entriesOf(t, r.path), r.bound)
	})
}

func TestBatchesFollowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{hang: make(chan struct{})}
		r := onDisk(t, d, zap.NewNop())
		for i := range 100 {
			r.note("core", record("a", uint64(i+1)))
		}
		synctest.Wait()
		close(d.hang)
		d.set(nil, nil)
		r.flush()
		require.LessOrEqual(t, d.writes, 2, "what waits is written in one go")
		r.stop()
		require.Len(t, entriesOf(t, r.path), 199)
	})
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	r := newRig(t)
	info, err := os.Stat(r.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	_, err = Open(Params{Path: r.path, Log: zap.NewNop()})
	require.ErrorIs(t, err, ErrInUse)
	require.EqualError(t, err, "ledger "+r.path+": the ledger is in use by another process")
	r.stop()
	require.NoError(t, os.Chmod(r.path, 0o640))
	_, err = OpenView(r.path)
	require.ErrorIs(t, err, ErrInsecure)
	require.NoError(t, os.Chmod(r.path, 0o600))
	r.start()
}

func TestWhatIsNoLedgerIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	_, err := OpenView(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, path)
	text := []byte(strings.Repeat("not a ledger\n", 1000))
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err = Open(Params{Path: path, Log: zap.NewNop()})
	require.ErrorIs(t, err, ErrNotLedger)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, got)
	_, err = Open(Params{Path: filepath.Join(dir, "no", "such", "folder"), Log: zap.NewNop()})
	require.ErrorIs(t, err, os.ErrNotExist)
	other, err := bbolt.Open(filepath.Join(dir, "other"), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, other.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("mine"))
		return err
	}))
	require.NoError(t, other.Close())
	_, err = Open(Params{Path: filepath.Join(dir, "other"), Log: zap.NewNop()})
	require.ErrorIs(t, err, ErrNotLedger)
}
