package table

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestS11_AConnectionThatIsGoneCannotSync(t *testing.T) {
	claim(t, "11.unregistered")
	b := newBed(t)
	gone := b.claim("core")
	b.leave("core")
	_, refused := b.trySync(gone, 1, "s@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code)
	_, refused = b.trySync(Claim{Owner: "core", Current: true}, 1, "s@1")
	require.Equal(t, CodeSyncNotAuthority, refused.Code)
	b.sync("core", "s@1") // its successor finds authority free
}

func TestS11_AGoodbyeOfTheRegistrationFreesAuthorityOfItsNumberOnly(t *testing.T) {
	claim(t, "11.unregistered", "3.authority.close")
	b := newBed(t)
	b.sync("core", "s@1")
	first := b.claim("core").Peer
	second := Peer{Conn: first.Conn, Registration: first.Registration + 1}
	b.leave("core")
	b.Join(second)
	_, refused := b.trySync(Claim{Peer: second, Owner: "core", Launch: 1, Current: true}, 1, "s@1")
	require.Nil(t, refused)
	require.Nil(t, b.Leave(first), "leaving twice does nothing")
	require.Equal(t, &second, b.Owners()[0].Authority)
}

func TestS11_AnUnchangedLinkIsNotCheckedAgain(t *testing.T) {
	claim(t, "11.link.new-only", "11.child-owner")
	b := newBed(t)
	b.sync("core", "p@1 child=hist")
	b.sync("hist", "k@1 parent=core/p@1")
	r := b.open("hist/k", "hist", "tool")
	require.Empty(t, b.apply("core", "p@1").Drains)
	require.Equal(t, "linked", b.link("hist/k"), "taking a child owner out ends no child")
	require.True(t, b.Release(r))
	require.Equal(t, "unchanged", outcome(b.apply("hist", "k@1 parent=core/p@1")))
	require.Equal(t, "updated", outcome(b.apply("hist", "k@1 parent=core/p@1 child=x")), "other content of the child may change")
	require.Equal(t, "linked", b.link("hist/k"))
	require.Equal(t, "scope_parent_not_permitted", outcome(b.apply("hist", "new@1 parent=core/p@1")))
	require.Equal(t, "scope_parent_not_permitted", outcome(b.apply("hist", "k@2 parent=core/p@1")), "a new epoch is a new link")
	require.Equal(t, "1", b.live("hist/k"))
}

func TestS11_RecordTypesRefuseWhatTheyDoNotKnow(t *testing.T) {
	claim(t, "11.records", "11.attributes")
	const ok = `"ref":"s","scope_epoch":1,"kind":"head"`
	for where, record := range map[string]string{
		`"who"`:                      `{` + ok + `,"who":1}`,
		`attributes`:                 `{` + ok + `,"attributes":{"agent_id":"a","role":"x"}}`,
		`carriers[0]`:                `{` + ok + `,"carriers":[{"principal":{"kind":"direct"},"until":1}]}`,
		`carriers[0].principal`:      `{` + ok + `,"carriers":[{"principal":{"kind":"direct","module_id":"x"}}]}`,
		`carriers[1].principal`:      `{` + ok + `,"carriers":[{"principal":{"kind":"direct"}},{"principal":{"kind":"reserved","module_id":"x","user":"u"}}]}`,
		`carriers[0].principal.kind`: `{` + ok + `,"carriers":[{"principal":{"kind":"root"}}]}`,
		`child_owners[0]`:            `{` + ok + `,"child_owners":[{"kind":"reserved"}]}`,
		`parent`:                     `{` + ok + `,"parent":{"owner":{"kind":"direct"},"ref":"p","scope_epoch":1,"x":1}}`,
	} {
		for _, body := range []string{syncBody(1, record), applyBody(1, record)} {
			decode := func() *Refusal { _, r := DecodeSync([]byte(body)); return r }
			if body[7:18] == "scope.apply" {
				decode = func() *Refusal { _, r := DecodeApply([]byte(body)); return r }
			}
			refused := decode()
			require.NotNil(t, refused, record)
			require.Equal(t, CodeInvalidControlBody, refused.Code)
			require.Contains(t, refused.Message, where)
		}
	}
	_, refused := DecodeApply([]byte(`{"generation":1,"upsert":[],"end":[{"ref":"a","scope_epoch":1,"x":1}]}`))
	require.Contains(t, refused.Message, `end[0]."x"`)
	call, refused := DecodeSync([]byte(`{"op":"scope.sync","generation":1,"scopes":[],"x":{"x":[1,{"x":null,"x":2}]},"x":1}`))
	require.Nil(t, refused, "members of the body itself that are unknown are passed over")
	require.Equal(t, uint64(1), call.Generation())
}

func TestS11_BodiesFromBeforeExpiryAndRunsDecodeUnchanged(t *testing.T) {
	claim(t, "11.old-bodies")
	b := newBed(t)
	old := `{"op":"scope.sync","generation":1,"scopes":[{"ref":"s","scope_epoch":1,"kind":"head","child_owners":[{"kind":"reserved","module_id":"hist"}],` +
		`"carriers":[{"principal":{"kind":"reserved","module_id":"aft"},"targets":["plexus","prefrontal-core"]},{"principal":{"kind":"direct"}}],` +
		`"attributes":{"agent_id":"a","delegates":true}}]}`
	call, refused := DecodeSync([]byte(old))
	require.Nil(t, refused)
	a, refused := b.Table.Sync(b.claim("core"), call, b.now)
	require.Nil(t, refused)
	require.Equal(t, "created", outcome(a))
	rec := a.Contents()[0].Record
	require.Nil(t, rec.ExpiresAtMS)
	require.Nil(t, rec.Attributes.RunID)
	require.NotContains(t, string(rec.Canonical(nil)), "expires")
}
