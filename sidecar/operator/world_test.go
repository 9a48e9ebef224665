package operator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

func anyEvent(*api.Event) bool { return true }

// mustSync is an accepted sync with one record created and one refused.
func mustSync(t testing.TB) *table.Applied {
	t.Helper()
	return syncInto(t, table.New(table.Config{Incarnation: "00112233445566778899aabbccddeeff", AuthorityOwners: []string{"core"}}),
		`{"generation":5,"scopes":[
			{"ref":"good","scope_epoch":1,"kind":"head","carriers":[{"principal":{"kind":"direct"}}],"attributes":{"agent_id":"alice"}},
			{"ref":"bad","scope_epoch":1,"kind":"head","attributes":{"delegates":true}}]}`)
}

func syncInto(t testing.TB, tb *table.Table, body string) *table.Applied {
	t.Helper()
	call, refusal := table.DecodeSync([]byte(body))
	require.Nil(t, refusal)
	peer := table.Peer{Conn: 2, Registration: 1}
	tb.Join(peer)
	applied, refusal := tb.Sync(table.Claim{Peer: peer, Owner: "core", Launch: 1, Current: true}, call, someMS)
	require.Nil(t, refusal)
	return applied
}

// newTestWorld is a world with the scopes of mustSync and one live route.
func newTestWorld(t testing.TB) *proxy.World {
	t.Helper()
	tb := table.New(table.Config{Incarnation: "00112233445566778899aabbccddeeff", AuthorityOwners: []string{"core"}})
	syncInto(t, tb, `{"generation":5,"scopes":[
		{"ref":"good","scope_epoch":1,"kind":"head","attributes":{"agent_id":"alice"},
		 "carriers":[{"principal":{"kind":"direct"}},{"principal":{"kind":"reserved","module_id":"aft"},"targets":["plexus"]}],
		 "child_owners":[{"kind":"reserved","module_id":"historian"}],
		 "bind_proof_sha256":"`+testProofHash+`"}]}`)
	opener, provider := table.Peer{Conn: 11}, table.Peer{Conn: 12, Registration: 1}
	tb.Join(opener)
	tb.Join(provider)
	id, _, ok := tb.Reserve(table.Reservation{
		Scope:  table.Key{Owner: table.ReservedPrincipal("core"), Ref: "good"},
		Opener: opener, Principal: table.Principal{Kind: table.Direct}, Module: "tool", Provider: provider,
	}, func(table.State) bool { return true })
	require.True(t, ok)
	require.Equal(t, table.Committed, tb.Commit(id))
	return &proxy.World{Table: tb, Incarnation: tb.Incarnation()}
}

// testProofHash is a secret of the test's: no output may hold it.
const testProofHash = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
