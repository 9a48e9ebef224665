package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADR0134_ARecordedOrderIsKeptBesideTheSet(t *testing.T) {
	const carrier = `{"principal":{"kind":"reserved","module_id":"z"},"targets":["n","m","n"]}`
	raw := `{"kind":"head","carriers":[` + carrier + `,{"principal":{"kind":"direct"}}],"scope_epoch":1,"ref":"a",
		"child_owners":[{"kind":"reserved","module_id":"q"},{"kind":"reserved","module_id":"p"}],"parent":null}`
	rec, recorded, err := DecodeRecorded([]byte(raw))
	require.NoError(t, err)
	require.Equal(t, `{"carriers":[`+carrier+`,{"principal":{"kind":"direct"}}],`+
		`"child_owners":[{"kind":"reserved","module_id":"q"},{"kind":"reserved","module_id":"p"}],`+
		`"kind":"head","ref":"a","scope_epoch":1}`, string(recorded))
	sorted, again, err := DecodeRecorded(rec.Canonical(nil))
	require.NoError(t, err)
	require.Equal(t, rec, sorted)
	require.Equal(t, string(rec.Canonical(nil)), string(again))
	require.NotEqual(t, string(recorded), string(again))
}

func TestARecordedRecordHoldsNoSecretAndNoCondition(t *testing.T) {
	for raw, what := range map[string]string{
		`{"ref":"a","scope_epoch":1,"kind":"head","bind_proof_sha256":"` + hash64 + `"}`: `"bind_proof_sha256" is not a member known here`,
		`{"ref":"a","scope_epoch":1,"kind":"head","replace_only_if_idle":true}`:          `"replace_only_if_idle" is not a member known here`,
		`{"ref":"a","scope_epoch":1,"kind":"head","x":1}`:                                `"x" is not a member known here`,
		`{"ref":"a","scope_epoch":1,"kind":"head"} {}`:                                   "is not one JSON value",
		`{"ref":"a"`: "is not valid JSON",
	} {
		_, _, err := DecodeRecorded([]byte(raw))
		require.EqualError(t, err, what)
	}
}

const hash64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// heard is a journal that remembers in words.
type heard struct{ lines []string }

func (h *heard) Note(ends []End, contents []Content) {
	for _, e := range ends {
		h.lines = append(h.lines, "ended "+e.ID.String()+" "+e.Cause.String())
	}
	for _, c := range contents {
		h.lines = append(h.lines, c.Outcome.String()+" "+c.ID.String())
	}
}

func TestAJournalHearsEachChangeInItsOrder(t *testing.T) {
	b := newBed(t)
	h := &heard{}
	b.Table.journal = h
	sync := func(lines ...string) *Applied {
		t.Helper()
		b.gens["core"]++
		call, refused := DecodeSync([]byte(`{"generation":` + fmt.Sprint(b.gens["core"]) + `,"scopes":[` + strings.Join(lines, ",") + `]}`))
		require.Nil(t, refused)
		a, refused := b.Table.Sync(b.claim("core"), call, b.now)
		require.Nil(t, refused)
		return a
	}
	const a1, b1 = `{"ref":"a","scope_epoch":1,"kind":"head"}`, `{"ref":"b","scope_epoch":1,"kind":"worker","expires_at_ms":1000000000010}`
	require.Len(t, sync(a1, b1).Contents(), 2)
	require.Empty(t, sync(a1, b1).Contents())
	b.now += 10
	sync(`{"ref":"a","scope_epoch":2,"kind":"head"}`, `{"ref":"b","scope_epoch":1,"kind":"worker"}`)
	require.Equal(t, []string{
		"created reserved:core/a@1", "created reserved:core/b@1",
		"ended reserved:core/b@1 expired", "ended reserved:core/a@1 owner_ended", "replaced reserved:core/a@2",
	}, h.lines)
}
