package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/table"
)

func TestEachAcceptedContentAndEachEndIsOneEntry(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1, "x"), record("b", 1), record("c", 1))
	r.sync("core", record("a", 1, "x"), record("b", 1), record("c", 1))
	r.at(began + 5)
	r.sync("core", record("a", 1, "x", "y"), record("b", 2))
	r.apply("core", nil, "b@2")
	require.Equal(t, []string{
		"1 created a@1", "2 created b@1", "3 created c@1",
		"4 ended owner_ended b@1", "5 ended owner_ended c@1", "6 updated a@1", "7 replaced b@2",
		"8 ended owner_ended b@2",
	}, story(r.entries()))
	require.Equal(t, int64(began), r.entries()[2].CreatedAt)
	require.Equal(t, int64(began+5), r.entries()[3].CreatedAt)
	verified(t, r.copy())
}

func TestAnEndByItsDeadlineHasItsCause(t *testing.T) {
	r := newRig(t)
	rec := func(ref string) string {
		return fmt.Sprintf(`{"ref":%q,"scope_epoch":1,"kind":"worker","expires_at_ms":%d}`, ref, began+10)
	}
	r.sync("core", rec("a"))
	r.sync("other", rec("b"))
	r.at(began + 10)
	r.table.Sweep(r.clock())
	r.flush()
	require.Equal(t, []string{"1 created a@1", "2 created b@1", "3 ended expired a@1", "4 ended expired b@1"}, story(r.entries()))
}

func TestASweepOfACallComesBeforeItsContents(t *testing.T) {
	r := newRig(t)
	r.sync("core", fmt.Sprintf(`{"ref":"a","scope_epoch":1,"kind":"worker","expires_at_ms":%d}`, began+10))
	r.at(began + 10)
	r.apply("core", []string{record("a", 2)})
	require.Equal(t, []string{"1 created a@1", "2 ended expired a@1", "3 created a@2"}, story(r.entries()))
}

func TestARefusedCallAndARefusedRecordAddNothing(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 2))
	_, refused := send(r.table, "core", syncBody(1, record("b", 1)), began)
	require.NotNil(t, refused)
	require.Equal(t, []string{"scope_epoch_regressed"}, outcomes(r.sync("core", record("a", 1))))
	require.Equal(t, []string{"1 created a@2"}, story(r.entries()))
}

func TestAnUnchangedResendAddsNothingAfterARestartNeither(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1, "x", "y"), record("b", 1))
	r.incarnate()
	require.Equal(t, []string{"created", "created"}, outcomes(r.sync("core", record("b", 1), record("a", 1, "y", "x", "y"))))
	r.restart()
	require.Equal(t, []string{"created", "created"}, outcomes(r.sync("core", record("a", 1, "y", "x"), record("b", 1, "z"))))
	require.Equal(t, []string{"1 created a@1", "2 created b@1", "3 updated b@1"}, story(r.entries()))
}

func TestAScopeThatIsThereAgainAfterItsEndIsCreatedAgain(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1))
	r.sync("core")
	r.restart()
	r.sync("core", record("a", 1))
	require.Equal(t, []string{"1 created a@1", "2 ended owner_ended a@1", "3 created a@1"}, story(r.entries()))
	verified(t, r.copy())
}

func TestTheSameRefOfTwoOwnersIsTwoScopes(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 1))
	r.sync("other", record("a", 1))
	e := r.entries()
	require.Equal(t, []string{"1 created a@1", "2 created a@1"}, story(e))
	require.Equal(t, e[0].RecordSHA256, e[1].RecordSHA256)
	require.NotEqual(t, e[0].ID, e[1].ID)
}

func TestNoEntryHoldsTheHashOfAProof(t *testing.T) {
	r := newRig(t)
	hash := strings.Repeat("ab", 32)
	rec := func(hash string) string {
		return fmt.Sprintf(`{"ref":"a","scope_epoch":1,"kind":"head","bind_proof_sha256":%q}`, hash)
	}
	r.sync("core", rec(hash))
	require.Equal(t, []string{"updated"}, outcomes(r.sync("core", rec(strings.Repeat("cd", 32)))))
	r.stop()
	defer r.start()
	raw, err := os.ReadFile(r.path)
	require.NoError(t, err)
	binary, err := hex.DecodeString(hash)
	require.NoError(t, err)
	for _, secret := range []string{hash, string(binary), "bind_proof"} {
		require.NotContains(t, string(raw), secret)
	}
	require.Equal(t, []string{"1 created a@1"}, story(entriesOf(t, r.path)), "the proof's hash is no part of the identity")
}

func TestOwnEntriesHoldSortedSets(t *testing.T) {
	r := newRig(t)
	r.sync("core", `{"ref":"a","scope_epoch":1,"kind":"head","attributes":{"delegates":true,"agent_id":"g"},
		"child_owners":[{"kind":"reserved","module_id":"q"},{"kind":"reserved","module_id":"p"}],
		"carriers":[{"principal":{"kind":"reserved","module_id":"z"},"targets":["n","m","n"]},{"principal":{"kind":"reserved","module_id":"b"}}]}`)
	e := r.entries()[0]
	require.Equal(t, `{"attributes":{"agent_id":"g","delegates":true},`+
		`"carriers":[{"principal":{"kind":"reserved","module_id":"b"}},{"principal":{"kind":"reserved","module_id":"z"},"targets":["m","n"]}],`+
		`"child_owners":[{"kind":"reserved","module_id":"p"},{"kind":"reserved","module_id":"q"}],`+
		`"kind":"head","ref":"a","scope_epoch":1}`, string(e.Record))
	require.Equal(t, table.Digest(sha256.Sum256(e.Record)), e.RecordSHA256)
}

// The chain by the package comment's words, written a second time.
func TestThePrefixIsTheDocumentedOne(t *testing.T) {
	r := newRig(t)
	r.sync("core", record("a", 7), record("b", 1))
	r.sync("core", record("a", 7))
	previous := make([]byte, 32)
	for _, e := range r.entries() {
		h := sha256.New()
		h.Write(previous)
		h.Write(e.RecordSHA256[:])
		for _, s := range []string{"reserved", "core", e.ID.Ref} {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			h.Write(n[:])
			h.Write([]byte(s))
		}
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], e.ID.Epoch)
		h.Write(n[:])
		previous = h.Sum(nil)
		require.Equal(t, hex.EncodeToString(previous), e.PrefixSHA256.String())
	}
	end := r.entries()[2]
	require.Equal(t, table.Digest(sha256.Sum256([]byte(`{"cause":"owner_ended","ref":"b","scope_epoch":1}`))), end.RecordSHA256)
}

func TestTheChainsEncodingIsUnambiguous(t *testing.T) {
	seen := map[string]table.ScopeID{}
	for _, id := range []table.ScopeID{
		scope("a", "b", 1), scope("ab", "", 1), scope("", "ab", 1), scope("a", "b\x00", 1), scope("a", "b", 256),
		{Key: table.Key{Owner: table.Principal{Kind: table.Direct}, Ref: "ab"}, Epoch: 1},
		{Key: table.Key{Owner: table.Principal{Kind: table.Unverified}, Ref: "ab"}, Epoch: 1},
	} {
		b := string(appendScope(nil, id))
		require.NotContains(t, seen, b)
		seen[b] = id
		end, ok := parseEnd(appendEnd(nil, id, table.CauseExpired))
		require.True(t, ok)
		require.Equal(t, table.End{ID: id, Cause: table.CauseExpired}, end)
	}
}

func TestEntriesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Number:    rapid.Uint64Min(1).Draw(t, "number"),
			CreatedAt: rapid.Int64().Draw(t, "at"),
			Reason:    rapid.SampledFrom([]Reason{Created, Replaced, Updated, Imported, Canonicalized, Ended}).Draw(t, "reason"),
			ID:        scope(rapid.String().Draw(t, "owner"), rapid.StringN(1, -1, -1).Draw(t, "ref"), rapid.Uint64().Draw(t, "epoch")),
		}
		copy(e.RecordSHA256[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "record"))
		copy(e.PrefixSHA256[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "prefix"))
		if e.Reason == Imported {
			e.Origin = &Origin{Number: 1, CreatedAt: 2, Reason: Updated, PrefixSHA256: e.RecordSHA256}
		}
		if e.Reason == Ended || e.Reason == Imported && rapid.Bool().Draw(t, "end") {
			e.Cause = table.CauseOwnerEnded
		} else if rapid.Bool().Draw(t, "whole") {
			e.Record = []byte(`{"kind":"head","ref":"a","scope_epoch":1}`)
		}
		got, err := parseEntry(e.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, e, got)
	})
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"number":1,"created_at":0,"reason":"ended","cause":"expired","owner":{"kind":"direct"},"ref":"a","scope_epoch":0,"record_sha256":"` +
		strings.Repeat("0", 64) + `","prefix_sha256":"` + strings.Repeat("0", 64) + `"}`))
	f.Add([]byte(`{"number":1,"record":{"carriers":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := parseEntry(raw)
		if err != nil {
			return
		}
		again, err := parseEntry(e.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}
