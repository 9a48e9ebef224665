package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"scopeward/table"
)

// envChild makes the test binary one of the processes that a test starts.
const envChild = "SCOPEWARD_LEDGER_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(envChild) {
	case "identity":
		os.Exit(identityChild())
	case "writer":
		os.Exit(writerChild())
	}
	goleak.VerifyTestMain(m)
}

// began is the wall clock at which a rig begins, Unix milliseconds.
const began = 1_700_000_000_000

// rig is a ledger with a table that it is the journal of.
type rig struct {
	*Ledger
	t     testing.TB
	path  string
	tombs bool
	table *table.Table
	gens  map[string]uint64

	mu  sync.Mutex
	now int64
}

func newRig(t testing.TB) *rig { return openRig(t, newRigPath(t), false) }

func openRig(t testing.TB, path string, tombstones bool) *rig {
	t.Helper()
	r := &rig{t: t, path: path, tombs: tombstones, now: began}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func logger(t testing.TB) *zap.Logger { return zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)) }

// start opens the ledger and begins an incarnation.
func (r *rig) start() {
	r.t.Helper()
	l, err := Open(Params{Path: r.path, Log: logger(r.t), Now: r.clock, Tombstones: r.tombs})
	require.NoError(r.t, err)
	r.Ledger = l
	r.incarnate()
}

func (r *rig) clock() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) at(ms int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = ms
}

// incarnate begins a new table, as when the router comes back.
func (r *rig) incarnate() {
	r.table = newTable(r.Ledger)
	r.gens = map[string]uint64{}
}

func newTable(l *Ledger) *table.Table {
	t := table.New(table.Config{
		Incarnation: strings.Repeat("a", 32), AuthorityOwners: []string{"core"},
		Journal: l, Tombstones: l.Remembered(),
	})
	for _, owner := range []string{"core", "other"} {
		t.Join(peerOf(owner))
	}
	return t
}

func peerOf(owner string) table.Peer { return table.Peer{Conn: uint64(owner[0]), Registration: 1} }

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(r.t, r.Ledger.Close(ctx))
}

// restart is the sidecar's: the ledger is closed and opened, the table is new.
func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

// sync sends the owner's full set and waits until it is on disk.
func (r *rig) sync(owner string, records ...string) *table.Applied {
	r.t.Helper()
	r.gens[owner]++
	return r.call(owner, syncBody(r.gens[owner], records...))
}

func syncBody(generation uint64, records ...string) string {
	return fmt.Sprintf(`{"op":"scope.sync","generation":%d,"scopes":[%s]}`, generation, strings.Join(records, ","))
}

// apply sends a delta of records and exact ends, ref@epoch.
func (r *rig) apply(owner string, records []string, ends ...string) *table.Applied {
	r.t.Helper()
	r.gens[owner]++
	var list []string
	for _, e := range ends {
		ref, epoch, _ := strings.Cut(e, "@")
		list = append(list, fmt.Sprintf(`{"ref":%q,"scope_epoch":%s}`, ref, epoch))
	}
	return r.call(owner, fmt.Sprintf(`{"op":"scope.apply","generation":%d,"upsert":[%s],"end":[%s]}`,
		r.gens[owner], strings.Join(records, ","), strings.Join(list, ",")))
}

func (r *rig) call(owner, body string) *table.Applied {
	r.t.Helper()
	a, refused := send(r.table, owner, body, r.clock())
	require.Nil(r.t, refused)
	r.flush()
	return a
}

func send(t *table.Table, owner, body string, now int64) (*table.Applied, *table.Refusal) {
	claim := table.Claim{Peer: peerOf(owner), Owner: owner, Launch: 1, Current: true}
	if strings.Contains(body, `"scope.apply"`) {
		call, refused := table.DecodeApply([]byte(body))
		if refused != nil {
			return nil, refused
		}
		return t.Apply(claim, call, now)
	}
	call, refused := table.DecodeSync([]byte(body))
	if refused != nil {
		return nil, refused
	}
	return t.Sync(claim, call, now)
}

func (r *rig) flush() {
	r.t.Helper()
	require.True(r.t, r.await(time.Minute), "not written in a minute")
}

// entries reads the file from another process's point of view: a copy of it.
func (r *rig) entries() []Entry {
	r.t.Helper()
	return entriesOf(r.t, r.copy())
}

// copy takes a snapshot into a file of its own.
func (r *rig) copy() string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "copy")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r.t, err)
	require.NoError(r.t, r.Snapshot(f))
	require.NoError(r.t, f.Close())
	return path
}

func entriesOf(t testing.TB, path string) []Entry {
	t.Helper()
	v, err := OpenView(path)
	require.NoError(t, err)
	defer v.Close()
	var list []Entry
	require.NoError(t, v.Entries(func(e *Entry) error {
		list = append(list, *e)
		return nil
	}))
	return list
}

// verified verifies a file and wants it sound.
func verified(t testing.TB, path string) *Report {
	t.Helper()
	r := verify(t, path)
	require.True(t, r.Sound(), "%v", r.Listed)
	return r
}

func verify(t testing.TB, path string) *Report {
	t.Helper()
	v, err := OpenView(path)
	require.NoError(t, err)
	defer v.Close()
	r, err := v.Verify()
	require.NoError(t, err)
	return r
}

// story is each entry as number reason[ cause] ref@epoch.
func story(entries []Entry) []string {
	list := []string{}
	for _, e := range entries {
		reason := e.Reason.String()
		if e.Ended() {
			reason += " " + e.Cause.String()
		}
		list = append(list, fmt.Sprintf("%d %s %s@%d", e.Number, reason, e.ID.Ref, e.ID.Epoch))
	}
	return list
}

// outcomes is what a call did with each record, or why not.
func outcomes(a *table.Applied) []string {
	list := []string{}
	for _, r := range a.Results {
		if r.Outcome == table.Refused {
			list = append(list, string(r.Code))
		} else {
			list = append(list, r.Outcome.String())
		}
	}
	return list
}

// record is a head's record with carriers in the order given.
func record(ref string, epoch uint64, carriers ...string) string {
	return fmt.Sprintf(`{"ref":%q,"scope_epoch":%d,"kind":"head","carriers":[%s]}`, ref, epoch, carrierList(carriers))
}

func carrierList(ids []string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprintf(`{"principal":{"kind":"reserved","module_id":%q}}`, id)
	}
	return strings.Join(list, ",")
}

func scope(owner, ref string, epoch uint64) table.ScopeID {
	return table.ScopeID{Key: table.Key{Owner: table.ReservedPrincipal(owner), Ref: ref}, Epoch: epoch}
}

// newRigPath is where a ledger may be made.
func newRigPath(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger") }
