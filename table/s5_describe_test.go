package table

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestS5_DescribeSeparatesTheReaderCases(t *testing.T) {
	claim(t, "5.describe.live", "5.describe.ended", "5.describe.not-live", "5.describe.refused")
	b := newBed(t)
	inc := `"daemon_incarnation":"` + strings.Repeat("a", 32) + `"`
	body := func(scope string, configured bool) string {
		return string(b.describe(scope).AppendReply(nil, configured))
	}
	require.JSONEq(t, `{"op":"scope.describe","status":"not_live",`+inc+`,"owner_synced":false,"owner_configured":true}`, body("core/s", true))
	b.refusedSync(CodeInvalidControlBody, "core", "s@1", "s@1")
	require.False(t, b.describe("core/s").OwnerSynced)
	b.sync("core", due("s@5 worker agent=a delegates proof=ab carrier=direct child=hist", 10), "p@1", "k@1 parent=core/p@1")
	require.JSONEq(t, `{"op":"scope.describe","status":"live","scope_epoch":5,`+inc+`,"owner_synced":true,"owner_configured":true,
		"scope":{"owner":{"kind":"reserved","module_id":"core"},"ref":"s","scope_epoch":5,"kind":"worker",
		"attributes":{"agent_id":"a","delegates":true},"owner_authorized":true,"expires_at_ms":1000000000010}}`, body("core/s", true))
	require.JSONEq(t, `{"owner":{"kind":"reserved","module_id":"core"},"ref":"k","scope_epoch":1,"kind":"head",
		"parent":{"owner":{"kind":"reserved","module_id":"core"},"ref":"p","scope_epoch":1},"parent_state":"linked","owner_authorized":true}`,
		string(b.describe("core/k").Scope.AppendJSON(nil)))
	require.JSONEq(t, `{"op":"scope.describe","status":"not_live",`+inc+`,"owner_synced":true,"owner_configured":true}`, body("core/never", true))
	require.JSONEq(t, `{"op":"scope.describe","status":"not_live",`+inc+`,"owner_synced":false,"owner_configured":false}`, body("nobody/s", false))
	b.apply("core", "end s@5")
	require.JSONEq(t, `{"op":"scope.describe","status":"ended","scope_epoch":5,`+inc+`,"owner_synced":true,"owner_configured":true}`, body("core/s", true))
	b.apply("core", "s@9")
	b.apply("core", "end s@9")
	require.Equal(t, uint64(9), *b.describe("core/s").Epoch, "the latest that ended")
}

func TestS5_AnOwnersFirstSyncIsItsFullSetEvenIfEmpty(t *testing.T) {
	claim(t, "5.describe.not-live")
	b := newBed(t)
	require.False(t, b.Synced("core"))
	b.sync("core")
	require.True(t, b.Synced("core"))
	require.True(t, b.describe("core/s").OwnerSynced)
	b.leave("core")
	require.True(t, b.Synced("core"), "it stays synced when its connection closes")
}

func TestS5_AStampMarshalsAsItAppends(t *testing.T) {
	claim(t, "5.describe.live", "134.sorted")
	b := newBed(t)
	b.sync("core", due("s@1 flow=f", 5))
	stamp := b.describe("core/s").Scope
	out, err := json.Marshal(stamp)
	require.NoError(t, err)
	require.Equal(t, string(stamp.AppendJSON(nil)), string(out))
	require.True(t, jsontext.Value(out).IsValid())
	set, err := json.Marshal(NewSet(ModuleID("b"), ModuleID("a"), ModuleID("b")))
	require.NoError(t, err)
	require.Equal(t, `["a","b"]`, string(set))
	carriers, err := json.Marshal(NewSet(
		Carrier{Principal: Principal{Kind: Direct}},
		Carrier{Principal: ReservedPrincipal("z"), Targeted: true, Targets: NewSet(ModuleID("n"), ModuleID("m"))},
		Carrier{Principal: ReservedPrincipal("a")},
	))
	require.NoError(t, err)
	require.Equal(t, `[{"principal":{"kind":"reserved","module_id":"a"}},{"principal":{"kind":"reserved","module_id":"z"},"targets":["m","n"]},{"principal":{"kind":"direct"}}]`, string(carriers))
}
