package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"scopeward/table"
)

// written is a closed ledger with every kind of entry: number 1 is imported and
// unsorted, 5 re-keys it.
func written(t *testing.T) string {
	var f foreignLog
	f.add("old", []string{"b", "a"}, []string{"b", "a"})
	path := newRigPath(t)
	_, err := Import(path, strings.NewReader(f.String()), began)
	require.NoError(t, err)
	r := openRig(t, path, true)
	r.sync("core", record("a", 1, "x"), record("b", 1))
	r.at(began + 100)
	r.sync("core", record("a", 1, "x", "y"), record("old", 1, "a", "b"))
	r.at(began + 200)
	r.sync("core", record("a", 2))
	require.Equal(t, []string{
		"1 imported old@1", "2 created a@1", "3 created b@1",
		"4 ended owner_ended b@1", "5 updated a@1", "6 prefix_hash_canonicalized old@1",
		"7 ended owner_ended a@1", "8 ended owner_ended old@1", "9 replaced a@2",
	}, story(r.entries()))
	require.NoError(t, r.Ledger.Close(t.Context()))
	return path
}

// tamper changes the file under the ledger's back.
func tamper(t *testing.T, path string, do func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(do))
	require.NoError(t, db.Close())
}

func edited(t *testing.T, path string, n uint64, from, to string) {
	t.Helper()
	tamper(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketEntries)
		v := bytes.Clone(b.Get(numberKey(n)))
		require.Contains(t, string(v), from)
		return b.Put(numberKey(n), bytes.Replace(v, []byte(from), []byte(to), 1))
	})
}

func TestVerifyCountsWhatIsThere(t *testing.T) {
	r := verified(t, written(t))
	require.Equal(t, uint64(9), r.Head)
	require.Equal(t, uint64(1), r.First)
	require.Equal(t, uint64(6), r.Contents)
	require.Equal(t, uint64(3), r.Ends)
	require.Equal(t, uint64(1), r.Unsorted)
	require.Zero(t, r.Changed)
}

func TestVerifyFindsEachWayToTamper(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, path string)
		at    uint64
		what  string
	}{
		{"a record", func(t *testing.T, path string) { edited(t, path, 2, `"module_id":"x"`, `"module_id":"z"`) }, 2, "record_sha256 is not that of the record"},
		{"an order", func(t *testing.T, path string) {
			edited(t, path, 5, carrierList([]string{"x", "y"}), carrierList([]string{"y", "x"}))
		}, 5, "not in its canonical form"},
		{"an owner", func(t *testing.T, path string) {
			edited(t, path, 2, `"owner":{"kind":"reserved","module_id":"core"}`, `"owner":{"kind":"reserved","module_id":"cork"}`)
		}, 2, "does not follow"},
		{"an epoch", func(t *testing.T, path string) {
			edited(t, path, 3, `"scope_epoch":1,"record":`, `"scope_epoch":9,"record":`)
		}, 3, "does not follow"},
		{"a cause", func(t *testing.T, path string) { edited(t, path, 4, `"owner_ended"`, `"expired"`) }, 4, "not that of the end"},
		{"a secret", func(t *testing.T, path string) {
			edited(t, path, 2, `"kind":"head"`, `"bind_proof_sha256":"`+strings.Repeat("a", 64)+`","kind":"head"`)
		}, 2, "can't be read"},
		{"an entry gone", func(t *testing.T, path string) {
			tamper(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketEntries).Delete(numberKey(3)) })
		}, 4, "follows number 2"},
		{"an entry's text", func(t *testing.T, path string) {
			tamper(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketEntries).Put(numberKey(3), []byte("{")) })
		}, 3, "can't be read"},
		{"what is looked up", func(t *testing.T, path string) {
			tamper(t, path, func(tx *bbolt.Tx) error {
				key := scopeKey(scope("core", "a", 1))
				return tx.Bucket(bucketScopes).Put(key[:], last{number: 2}.append(nil))
			})
		}, 2, "index of scopes"},
		{"the beginning", func(t *testing.T, path string) {
			tamper(t, path, func(tx *bbolt.Tx) error {
				return tx.Bucket(bucketMeta).Put(keyAnchor, anchor{number: 1}.append(nil))
			})
		}, 1, "follows number 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t)
			c.spoil(t, path)
			r := verify(t, path)
			require.False(t, r.Sound())
			require.Equal(t, c.at, r.Listed[0].Number, "%v", r.Listed)
			require.Contains(t, r.Listed[0].What, c.what)
		})
	}
}

// Whoever edits a record and every hash after it ends with another head: that is
// what an operator compares.
func TestARewrittenChainHasAnotherHead(t *testing.T) {
	path := written(t)
	was := verified(t, path)
	tamper(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketEntries)
		var prefix table.Digest
		for n := uint64(1); n <= was.Head; n++ {
			e, err := parseEntry(b.Get(numberKey(n)))
			require.NoError(t, err)
			if n == 3 {
				rec, _, err := table.DecodeRecorded([]byte(record("b", 1, "thief")))
				require.NoError(t, err)
				e.Record, e.RecordSHA256 = rec.Canonical(nil), rec.Digest()
			}
			e.PrefixSHA256 = chained(prefix, e.RecordSHA256, e.ID)
			prefix = e.PrefixSHA256
			if err := b.Put(numberKey(n), e.AppendJSON(nil)); err != nil {
				return err
			}
		}
		return nil
	})
	is := verified(t, path)
	require.Equal(t, was.Head, is.Head)
	require.NotEqual(t, was.Prefix, is.Prefix)
}

func TestProveTellsWhatWasGrantedWhen(t *testing.T) {
	path := written(t)
	v, err := OpenView(path)
	require.NoError(t, err)
	defer v.Close()
	p, err := v.Prove(scope("core", "a", 1))
	require.NoError(t, err)
	require.True(t, p.Report.Sound())
	var steps []Entry
	for _, s := range p.Steps {
		require.Equal(t, chained(s.Previous, s.RecordSHA256, s.ID), s.PrefixSHA256)
		steps = append(steps, s.Entry)
	}
	require.Equal(t, []string{"2 created a@1", "5 updated a@1", "7 ended owner_ended a@1"}, story(steps))
	require.Equal(t, []int64{began, began + 100, began + 200}, []int64{steps[0].CreatedAt, steps[1].CreatedAt, steps[2].CreatedAt})
	require.Contains(t, string(steps[1].Record), carrierList([]string{"x", "y"}))

	p, err = v.Prove(scope("other", "a", 1))
	require.NoError(t, err)
	require.Empty(t, p.Steps)
}

func TestCompactKeepsTheChainAndWhatIsGranted(t *testing.T) {
	path := written(t)
	was := verified(t, path)
	r, err := Compact(path, began+1)
	require.NoError(t, err)
	// 1 and 2 are superseded, 3 is of a scope that ended: all before the time.
	require.Equal(t, uint64(3), r.Entries)
	require.Zero(t, r.Records)
	is := verified(t, path)
	require.Equal(t, was.Prefix, is.Prefix)
	require.Equal(t, was.Head, is.Head)
	require.Equal(t, uint64(4), is.First)
	require.Equal(t, is.Prefix, r.Prefix)

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	// The ledger goes on from there: what is current is current, what ended has.
	rig := openRig(t, path, true)
	require.Equal(t, []string{"scope_epoch_ended", "scope_epoch_ended", "created"},
		outcomes(rig.sync("core", record("a", 1), record("b", 1), record("a2", 1))))
	require.Equal(t, []string{"10 created a2@1"}, story(rig.entries())[6:])
}

func TestCompactTakesRecordsFromWhatStays(t *testing.T) {
	path := newRigPath(t)
	r := openRig(t, path, true)
	r.sync("core", record("stays", 1, "x"), record("goes", 1, "secret-of-the-past"))
	r.sync("core", record("stays", 1, "x"), record("goes", 1))
	r.sync("core", record("stays", 1, "x"))
	r.stop()
	was := verified(t, path)
	c, err := Compact(path, began+1)
	require.NoError(t, err)
	require.Equal(t, uint64(2), c.Records)
	require.Zero(t, c.Entries)
	is := verified(t, path)
	require.Equal(t, was.Prefix, is.Prefix)
	require.Equal(t, uint64(2), is.Compacted)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "secret-of-the-past")
	again, err := Compact(path, began+1)
	require.NoError(t, err)
	require.Zero(t, again.Records+again.Entries, "there is nothing more to take")
	r.start()
	require.Equal(t, []string{"created"}, outcomes(r.sync("core", record("stays", 1, "x"))))
	require.Len(t, r.entries(), 4, "the content that stays is still known")
}

func TestCompactOfEverythingKeepsTheHead(t *testing.T) {
	path := newRigPath(t)
	r := openRig(t, path, true)
	r.sync("core", record("a", 1))
	r.sync("core")
	r.stop()
	was := verified(t, path)
	c, err := Compact(path, began+1)
	require.NoError(t, err)
	require.Equal(t, uint64(2), c.Entries)
	is := verified(t, path)
	require.Equal(t, was.Prefix, is.Prefix)
	require.Zero(t, is.Entries)
	r.start()
	require.Equal(t, []string{"scope_epoch_ended", "created"}, outcomes(r.sync("core", record("a", 1), record("a2", 1))))
	require.Equal(t, []string{"3 created a2@1"}, story(r.entries()))
}

func TestCompactKeepsWhatTakesAnEndBack(t *testing.T) {
	path := newRigPath(t)
	r := openRig(t, path, false)
	r.sync("core", record("a", 1))
	r.sync("core")
	r.stop()
	_, err := Compact(path, began+1)
	require.NoError(t, err)
	r.start()
	r.sync("core", record("a", 1)) // tombstones are off
	r.tombs = true
	r.restart()
	require.Equal(t, []string{"created"}, outcomes(r.sync("core", record("a", 1))))
}

func TestCompactLeavesWhatDoesNotVerify(t *testing.T) {
	path := written(t)
	edited(t, path, 4, `"owner_ended"`, `"expired"`)
	was, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = Compact(path, began+1000)
	require.ErrorContains(t, err, "does not verify")
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, was, is)
	require.NoFileExists(t, path+".compact")
}

// An open that waited for the lock while the file was replaced goes to the new
// file.
func TestAnOpenThatMeetsACompactionFollowsIt(t *testing.T) {
	path := written(t)
	held, err := openFile(path, toWrite)
	require.NoError(t, err)
	opened := make(chan *Ledger)
	go func() {
		l, err := Open(Params{Path: path, Log: logger(t)})
		if err != nil {
			t.Error(err)
		}
		opened <- l
	}()
	require.Eventually(t, func() bool { return opens(t, path) == 2 }, time.Minute, time.Millisecond, "it waits for the lock")
	require.NoError(t, (&CompactReport{}).compact(held, path, began+1000))
	require.NoError(t, held.Close())
	l := <-opened
	require.NotNil(t, l)
	_, refused := send(newTable(l), "core", syncBody(1, record("next", 1)), began)
	require.Nil(t, refused)
	require.NoError(t, l.Close(t.Context()))
	is := verified(t, path)
	require.Equal(t, uint64(9), is.First, "it is the compacted one")
	require.Equal(t, uint64(10), is.Head, "and what was written is in it")
}

// opens is how often this process has a file open.
func opens(t *testing.T, path string) int {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && to == path {
			n++
		}
	}
	return n
}
