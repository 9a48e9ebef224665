package admission

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

// The cast: core is listed in scope_authority_owners, plain is not.
var (
	core   = table.ReservedPrincipal("core")
	plain  = table.ReservedPrincipal("plain")
	mate   = table.ReservedPrincipal("mate")
	direct = table.Principal{Kind: table.Direct}
)

const now = int64(1_900_000_000_000)

// world is a table with one opener and one provider in it.
type world struct {
	t          testing.TB
	table      *table.Table
	opener     table.Peer
	provider   table.Peer
	owners     map[string]table.Peer
	generation int
}

func newTestWorld(t testing.TB) *world {
	w := &world{
		t:        t,
		table:    table.New(table.Config{Incarnation: strings.Repeat("0", 32), AuthorityOwners: []string{"core"}}),
		opener:   table.Peer{Conn: 1, Registration: 1},
		provider: table.Peer{Conn: 2, Registration: 1},
		owners:   map[string]table.Peer{},
	}
	w.table.Join(w.opener)
	w.table.Join(w.provider)
	return w
}

// sync gives owner the set of records and requires that each is held.
func (w *world) sync(owner string, records ...string) *table.Applied {
	w.t.Helper()
	applied := w.trySync(owner, records...)
	for _, r := range applied.Results {
		require.NotEqual(w.t, table.Refused, r.Outcome, "%s: %s", r.Ref, r.Message)
	}
	return applied
}

func (w *world) trySync(owner string, records ...string) *table.Applied {
	w.t.Helper()
	peer, known := w.owners[owner]
	if !known {
		peer = table.Peer{Conn: uint64(100 + len(w.owners)), Registration: 1}
		w.owners[owner] = peer
		w.table.Join(peer)
	}
	w.generation++
	body := fmt.Sprintf(`{"op":"scope.sync","generation":%d,"scopes":[%s]}`, w.generation, strings.Join(records, ","))
	call, refusal := table.DecodeSync([]byte(body))
	require.Nil(w.t, refusal, "%v", refusal)
	applied, refusal := w.table.Sync(table.Claim{Peer: peer, Owner: owner, Launch: 1, Current: true}, call, now)
	require.Nil(w.t, refusal, "%v", refusal)
	require.Len(w.t, applied.Results, len(records))
	return applied
}

// record renders a scope record: ref, epoch 5, kind head, and more members.
func record(ref string, more ...string) string {
	return recordAt(ref, 5, more...)
}

func recordAt(ref string, epoch uint64, more ...string) string {
	members := append([]string{fmt.Sprintf(`"ref":%q,"scope_epoch":%d,"kind":"head"`, ref, epoch)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

const directCarries = `"carriers":[{"principal":{"kind":"direct"}}]`

// ask is an open of core's ref at epoch 5 by a direct peer to tool.
func (w *world) ask(ref string, change ...func(*Ask)) Ask {
	a := Ask{
		Selector:  Selector{Owner: core, Ref: ref, Epoch: ptr(uint64(5))},
		Opener:    w.opener,
		Principal: direct,
		Module:    "tool",
		Provider:  w.provider,
		Now:       now,
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func (w *world) admit(ref string, change ...func(*Ask)) Decision {
	return Admit(w.table, w.ask(ref, change...))
}

func by(p table.Principal) func(*Ask)     { return func(a *Ask) { a.Principal = p } }
func to(module string) func(*Ask)         { return func(a *Ask) { a.Module = module } }
func at(epoch uint64) func(*Ask)          { return func(a *Ask) { a.Selector.Epoch = &epoch } }
func of(owner table.Principal) func(*Ask) { return func(a *Ask) { a.Selector.Owner = owner } }
func proving(proof string) func(*Ask)     { return func(a *Ask) { a.Selector.BindProof = &proof } }
func roster(r Roster) func(*Ask)          { return func(a *Ask) { a.Roster = r } }
func when(ms int64) func(*Ask)            { return func(a *Ask) { a.Now = ms } }
func declaring(cs ...Capability) func(*Ask) {
	return func(a *Ask) { a.Capabilities = NewCapabilities(cs...) }
}

func ptr[T any](v T) *T { return &v }

// secret is a bind proof of 32 bytes and its record member.
func secret(seed byte) (proof, member string) {
	var b [32]byte
	for i := range b {
		b[i] = seed + byte(7*i)
	}
	sum := sha256.Sum256(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:]), `"bind_proof_sha256":"` + hex.EncodeToString(sum[:]) + `"`
}

func requireAdmitted(t testing.TB, d Decision) {
	t.Helper()
	require.Equal(t, Admitted, d.Verdict, "%s %s: %s", d.Rule, d.Code, d.Message)
	require.Empty(t, d.Code)
	require.Empty(t, d.Message)
	require.NotZero(t, d.Route)
	require.NotEmpty(t, d.Stamp)
}

func requireRefused(t testing.TB, code Code, rule string, d Decision) {
	t.Helper()
	require.Equal(t, Refused, d.Verdict)
	require.Equal(t, code, d.Code, d.Message)
	require.Equal(t, rule, d.Rule)
	require.NotEmpty(t, d.Message)
	require.Zero(t, d.Route)
	require.Zero(t, d.Tag)
	require.Nil(t, d.Stamp)
	require.Empty(t, d.Mode)
}
