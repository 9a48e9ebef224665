package ledger

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

// foreignLog writes a log as another program would: it hashes sets in whatever
// order it has them.
type foreignLog struct {
	lines  []string
	prefix table.Digest
}

// add records a head's record with one order of its carriers and hashes it with
// another.
func (f *foreignLog) add(ref string, recorded, hashed []string) {
	f.line(scope("core", ref, 1), Created, 0, foreignRecord(ref, recorded), digestOf(foreignRecord(ref, hashed)))
}

func digestOf(raw string) table.Digest { return sha256.Sum256([]byte(raw)) }

func (f *foreignLog) end(ref string, c table.Cause) {
	f.line(scope("core", ref, 1), Ended, c, "", endDigest(scope("core", ref, 1), c))
}

func (f *foreignLog) line(id table.ScopeID, reason Reason, c table.Cause, record string, digest table.Digest) {
	f.prefix = chained(f.prefix, digest, id)
	e := Entry{
		Number: uint64(len(f.lines) + 1), CreatedAt: began - 1000, Reason: reason, Cause: c, ID: id,
		RecordSHA256: digest, PrefixSHA256: f.prefix,
	}
	if record != "" {
		e.Record = []byte(record)
	}
	f.lines = append(f.lines, string(e.AppendJSON(nil)))
}

func (f *foreignLog) String() string { return strings.Join(f.lines, "\n") + "\n" }

// foreignRecord is canonical but for the order of its carriers.
func foreignRecord(ref string, carriers []string) string {
	return fmt.Sprintf(`{"carriers":[%s],"kind":"head","ref":%q,"scope_epoch":1}`, carrierList(carriers), ref)
}

// The six shapes of ADR-0134, in its words, and what becomes of each when its
// scope is next accepted with the carriers {a, b, c}.
func TestADR0134_TheSixShapesOfARecordedSet(t *testing.T) {
	sorted, reversed, inserted := []string{"a", "b", "c"}, []string{"c", "b", "a"}, []string{"b", "a", "c"}
	other := []string{"a", "b", "d"}
	shapes := []struct {
		ref              string
		recorded, hashed []string
		reading          Reading
	}{
		{"fixed-sorted", sorted, sorted, Current},
		{"fixed-reversed", reversed, reversed, Unsorted},
		{"insertion-order", inserted, inserted, Unsorted},
		// Such a process recorded the order after one rebuild, not the one it hashed.
		{"reversed-at-each-rebuild", sorted, reversed, Changed},
		{"reversed-at-each-rebuild-hashed-sorted", reversed, sorted, Current},
		{"changed-content", other, other, Changed},
		{"both", []string{"d", "b", "a"}, []string{"d", "b", "a"}, Changed},
	}
	var f foreignLog
	var resent []string
	for _, s := range shapes {
		f.add(s.ref, s.recorded, s.hashed)
		resent = append(resent, record(s.ref, 1, inserted...))
	}
	r := newRig(t)
	r.stop()
	report, err := Import(r.path, strings.NewReader(f.String()), began)
	require.NoError(t, err)
	require.Equal(t, &ImportReport{Entries: 7, Unsorted: 3, Changed: 1, Head: 7}, report)
	r.start()
	imported := r.entries()
	verified(t, r.copy())

	r.at(began + 50)
	r.sync("core", resent...)
	got := r.entries()
	require.Equal(t, imported, got[:len(imported)], "what was imported stays as it was")
	require.Equal(t, []string{
		"8 prefix_hash_canonicalized fixed-reversed@1",
		"9 prefix_hash_canonicalized insertion-order@1",
		"10 updated reversed-at-each-rebuild@1",
		"11 updated changed-content@1",
		"12 updated both@1",
	}, story(got[len(imported):]))
	for i, s := range shapes {
		rec, _, err := table.DecodeRecorded([]byte(record(s.ref, 1, sorted...)))
		require.NoError(t, err)
		require.Equal(t, s.reading, read(&imported[i], rec.Digest()), s.ref)
	}
	// Only the two hashes, the number and created_at changed: as a set, the record
	// is the one that was recorded.
	for _, pair := range [][2]int{{7, 1}, {8, 2}} {
		is, was := got[pair[0]], got[pair[1]]
		require.Equal(t, was.ID, is.ID)
		require.Equal(t, int64(began+50), is.CreatedAt)
		require.NotEqual(t, was.RecordSHA256, is.RecordSHA256)
		a, _, err := table.DecodeRecorded(was.Record)
		require.NoError(t, err)
		b, _, err := table.DecodeRecorded(is.Record)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
	verified(t, r.copy())
	require.Equal(t, uint64(2), r.Stats().Rekeyed)

	// Once: after a restart every one of them is current.
	r.restart()
	r.sync("core", resent...)
	require.Equal(t, got, r.entries())
}

func TestARekeyMovesNeitherVersionNorRouteNorStamp(t *testing.T) {
	// The same story over a ledger that is current and over one that is re-keyed.
	tell := func(hashed []string) (string, uint64) {
		var f foreignLog
		f.add("a", hashed, hashed)
		r := newRig(t)
		r.stop()
		_, err := Import(r.path, strings.NewReader(f.String()), began)
		require.NoError(t, err)
		r.start()
		var told strings.Builder
		tell := func(a *table.Applied) {
			told.Write(a.AppendReply(nil))
			fmt.Fprintf(&told, " drains %v\n", a.Drains)
		}
		tell(r.sync("core", record("a", 1, "x", "y")))
		opener, module := table.Peer{Conn: 900}, table.Peer{Conn: 901}
		r.table.Join(opener)
		r.table.Join(module)
		id, tag, ok := r.table.Reserve(table.Reservation{
			Scope: scope("core", "a", 1).Key, Opener: opener, Principal: table.ReservedPrincipal("x"),
			Module: "m", Provider: module,
		}, func(s table.State) bool { return s.Live != nil })
		require.True(t, ok)
		require.Equal(t, table.Committed, r.table.Commit(id))
		tell(r.sync("core", record("a", 1, "y", "x")))
		told.Write(r.table.Describe(tag.Key).AppendReply(nil, true))
		r.table.Dump(&told)
		return told.String(), r.Stats().Rekeyed
	}
	current, none := tell([]string{"x", "y"})
	rekeyed, once := tell([]string{"y", "x"})
	require.Zero(t, none)
	require.Equal(t, uint64(1), once)
	require.Equal(t, current, rekeyed)
}

func TestImportOfAnEndedScope(t *testing.T) {
	var f foreignLog
	f.add("a", []string{"y", "x"}, []string{"y", "x"})
	f.end("a", table.CauseExpired)
	r := openRig(t, newRigPath(t), true)
	r.stop()
	report, err := Import(r.path, strings.NewReader(f.String()), began)
	require.NoError(t, err)
	require.Equal(t, &ImportReport{Entries: 2, Ends: 1, Unsorted: 1, Head: 2}, report)
	r.start()
	require.Equal(t, []string{"scope_expired"}, outcomes(r.sync("core", record("a", 1, "x", "y"))))
	require.Equal(t, []string{"1 imported a@1", "2 imported expired a@1"}, story(r.entries()))
}

func TestImportNeverRevivesNorRewritesWhatIsKnownHere(t *testing.T) {
	var f foreignLog
	f.add("ended", []string{"x"}, []string{"x"})
	f.add("live", []string{"y", "x"}, []string{"y", "x"})
	r := openRig(t, newRigPath(t), true)
	r.sync("core", record("ended", 1), record("live", 1, "z"))
	r.sync("core", record("live", 1, "z"))
	r.stop()
	_, err := Import(r.path, strings.NewReader(f.String()), began)
	require.NoError(t, err)
	r.start()
	require.Equal(t, []string{"scope_epoch_ended", "created"}, outcomes(r.sync("core", record("ended", 1), record("live", 1, "z"))))
	require.Len(t, r.entries(), 5, "the content that was known here is still the last one")
	verified(t, r.copy())
}

func TestImportIntoAnEmptyLedgerGivesTheForeignPrefix(t *testing.T) {
	var f foreignLog
	for i := range 5 {
		f.add(fmt.Sprint("r", i), []string{"b", "a"}, []string{"b", "a"})
	}
	path := newRigPath(t)
	_, err := Import(path, strings.NewReader(f.String()), began)
	require.NoError(t, err)
	require.Equal(t, Prefix(f.prefix), verified(t, path).Prefix)
	for i, e := range entriesOf(t, path) {
		require.Equal(t, &Origin{Number: uint64(i + 1), CreatedAt: began - 1000, Reason: Created, PrefixSHA256: e.PrefixSHA256}, e.Origin)
	}
}

func TestExportedEntriesImport(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1, "y", "x"), record("b", 1))
	r.sync("core", record("a", 1, "y"))
	var lines []string
	for _, e := range r.entries() {
		lines = append(lines, string(e.AppendJSON(nil)))
	}
	for from := range lines {
		path := newRigPath(t)
		_, err := Import(path, strings.NewReader(strings.Join(lines[from:], "\n")), began)
		require.NoError(t, err, "from line %d", from)
		verified(t, path)
	}
}

func TestImportRefusesAllForOneLine(t *testing.T) {
	good := func() *foreignLog {
		f := &foreignLog{}
		f.add("a", []string{"b", "a"}, []string{"b", "a"})
		f.add("b", []string{"a"}, []string{"a"})
		f.end("a", table.CauseOwnerEnded)
		return f
	}
	edit := func(line int, from, to string) func(*foreignLog) {
		return func(f *foreignLog) {
			require.Contains(t, f.lines[line], from)
			f.lines[line] = strings.Replace(f.lines[line], from, to, 1)
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(*foreignLog)
		line  int
		what  string
	}{
		{"another epoch", edit(1, `"scope_epoch":1,"record"`, `"scope_epoch":2,"record"`), 2, "the record is of another scope"},
		{"another owner", edit(1, `"module_id":"core"`, `"module_id":"oops"`), 2, "prefix_sha256 does not follow"},
		{"another hash", edit(0, `"record_sha256":"`, `"record_sha256":"0`), 1, `"record_sha256" is not`},
		{"a gap", func(f *foreignLog) { f.lines = slices.Delete(f.lines, 1, 2) }, 2, "number 3 follows number 1"},
		{"another order", func(f *foreignLog) { f.lines[0], f.lines[1] = f.lines[1], f.lines[0] }, 2, "number 1 follows number 2"},
		{"another cause", edit(2, `"owner_ended"`, `"expired"`), 3, "record_sha256 is not that of the end"},
		{"a secret", edit(0, `"kind":"head"`, `"bind_proof_sha256":"`+strings.Repeat("0", 64)+`","kind":"head"`), 1, "bind_proof_sha256"},
		{"an unknown member", edit(0, `"number":1`, `"number":1,"extra":1`), 1, "is not what an entry holds there"},
		{"no JSON", func(f *foreignLog) { f.lines[2] = "{" }, 3, "not one JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good()
			c.spoil(f)
			path := newRigPath(t)
			_, err := Import(path, strings.NewReader(f.String()), began)
			var at *LineError
			require.ErrorAs(t, err, &at)
			require.Equal(t, c.line, at.Line, at.What)
			require.Contains(t, at.What, c.what)
			require.NoFileExists(t, path)
		})
	}
}

func TestImportTakesALogOnce(t *testing.T) {
	var f foreignLog
	f.add("a", []string{"b", "a"}, []string{"b", "a"})
	path := newRigPath(t)
	_, err := Import(path, strings.NewReader(f.String()), began)
	require.NoError(t, err)
	_, err = Import(path, strings.NewReader(f.String()), began)
	require.ErrorIs(t, err, ErrKnown)
	require.Len(t, entriesOf(t, path), 1)
}
