package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestS2_TheSameRefUnderTwoOwnersIsTwoScopes(t *testing.T) {
	claim(t, "2.key")
	b := newBed(t)
	b.sync("core", "s@1 agent=a")
	b.sync("hist", "s@5 worker")
	r := b.open("core/s", "core", "tool")
	a := b.sync("hist")
	require.Equal(t, []string{"s@5"}, endedRefs(a))
	require.Empty(t, a.Drains)
	require.Equal(t, "1", b.live("core/s"))
	require.True(t, b.Release(r))
}

func TestS2_TheOwnerIsTheConnectionsAndDirectOwnsNothing(t *testing.T) {
	claim(t, "2.owner")
	b := newBed(t)
	b.sync("core", "s@1")
	require.Equal(t, StatusNotLive, b.describe("direct/s").Status)
	require.False(t, b.describe("direct/s").OwnerSynced)
	_, _, ok := b.Reserve(Reservation{
		Scope: parseKey("direct/s"), Opener: b.peer("x"), Principal: ReservedPrincipal("core"), Provider: b.peer("m"),
	}, func(s State) bool { return s.Live != nil || s.Synced })
	require.False(t, ok)
	require.Equal(t, "scope_parent_not_permitted", outcome(b.apply("core", "k@1 parent=direct/s@1")))
}

func TestS2_RefIsOpaque(t *testing.T) {
	claim(t, "2.ref")
	b := newBed(t)
	for i, ref := range []string{"a b", "x/y", "..", "é世", "\n\"\\", strings.Repeat("R", 5000)} {
		a := b.apply2(i == 0, "core", fmt.Sprintf(`{"ref":%s,"scope_epoch":1,"kind":"head"}`, appendString(nil, ref)))
		require.Equal(t, "created", outcome(a))
		require.Equal(t, ref, a.Results[0].Ref)
		require.Equal(t, StatusLive, b.Describe(Key{ReservedPrincipal("core"), ref}).Status)
	}
}

// apply2 is a sync for the first call of an owner, then an apply.
func (b *bed) apply2(first bool, owner string, lines ...string) *Applied {
	b.t.Helper()
	if first {
		return b.sync(owner, lines...)
	}
	return b.apply(owner, lines...)
}

func TestS2_ScopeEpochIsAnExactUnsigned64BitInteger(t *testing.T) {
	claim(t, "2.epoch.exact")
	b := newBed(t)
	a := b.sync("core", "z@0", "big@18446744073709551615", "odd@9007199254740993")
	require.Equal(t, []string{"created", "created", "created"}, outcomesOf(a))
	require.Equal(t, "18446744073709551615", b.live("core/big"))
	require.Equal(t, "9007199254740993", b.live("core/odd"))
	require.Contains(t, string(a.AppendReply(nil)), `"scope_epoch":9007199254740993`)
	require.Equal(t, "0", b.live("core/z"))
}

func TestS2_ALowerEpochIsRefusedAndTheHeldScopeStays(t *testing.T) {
	claim(t, "2.epoch.regressed")
	b := newBed(t)
	b.sync("core", "s@5")
	require.Equal(t, "scope_epoch_regressed", outcome(b.sync("core", "s@4")))
	require.Equal(t, "5", b.live("core/s"))
}

func TestS2_AnEpochBelowARememberedEndedOneIsRefused(t *testing.T) {
	claim(t, "2.epoch.tombstoned")
	b := newBed(t)
	b.sync("core", "s@5")
	b.sync("core")
	require.Equal(t, "scope_epoch_regressed", outcome(b.apply("core", "s@4")))
	require.Equal(t, "created", outcome(b.apply("core", "s@6")))
	b.now = start
	b.apply("core", fmt.Sprintf("x@5 expires=%d", start+10))
	b.now = start + 10
	require.Equal(t, "scope_epoch_regressed", outcome(b.apply("core", "x@4")), "the call's own sweep counts")
}

func TestS2_VersionMovesWithContentOnly(t *testing.T) {
	claim(t, "2.version")
	b := newBed(t)
	contents := []string{
		"s@1", "s@1 carrier=aft", "s@1 carrier=aft->tool", "s@1 child=hist", "s@1 agent=a", "s@1 agent=a delegates",
		"s@1 agent=a flow=f", "s@1 agent=a run=r", "s@1 proof=ab", "s@1 parent=hist/p@1", "s@1 parent=hist/p@2",
	}
	b.sync("core", contents[0])
	for _, content := range contents[1:] {
		before := b.version("core/s")
		require.Equal(t, "updated", outcome(b.apply("core", content)), content)
		moved := b.version("core/s")
		require.Greater(t, moved, before, content)
		require.Equal(t, "unchanged", outcome(b.apply("core", content)), content)
		require.Equal(t, "unchanged", outcome(b.sync("core", content)), content)
		require.Equal(t, moved, b.version("core/s"), content)
	}
}

func TestS2_NoVersionIsUsedTwice(t *testing.T) {
	claim(t, "2.version.once")
	b := newLimitedBed(t, Limits{Tombstones: 1})
	b.sync("core", "s@1")
	stale := b.reserve("core/s", "core", "tool", false)
	b.apply("core", "end s@1")
	b.apply("core", "x@1")
	b.apply("core", "end x@1") // s@1 is forgotten and may come back
	require.Equal(t, "created", outcome(b.apply("core", "s@1")))
	require.Equal(t, StaleEnded, b.Commit(stale), "the bind was of another session")
	seen := map[uint64]bool{}
	for _, r := range b.sync("core", "s@2", "x@2", "y@1").Results {
		require.False(t, seen[r.Version])
		seen[r.Version] = true
	}
}

func TestS2_BindProofHashIsExactly64LowercaseHex(t *testing.T) {
	claim(t, "2.proof.format")
	hash := strings.Repeat("0a", 32)
	for _, bad := range []string{`""`, `"` + hash[:63] + `"`, `"` + hash + `0"`, `"` + strings.ToUpper(hash) + `"`, `"` + strings.Repeat("g", 64) + `"`, `1`, `[]`} {
		record := `{"ref":"s","scope_epoch":1,"kind":"head","bind_proof_sha256":` + bad + `}`
		_, refused := DecodeSync([]byte(syncBody(1, record)))
		require.NotNil(t, refused, bad)
		require.Equal(t, CodeInvalidControlBody, refused.Code)
		require.Contains(t, refused.Message, "bind_proof_sha256")
		require.NotContains(t, refused.Message, hash[:8])
		_, refused = DecodeApply([]byte(applyBody(1, record)))
		require.NotNil(t, refused, bad)
	}
	b := newBed(t)
	require.Equal(t, "created", outcome(b.sync("core", "s@1 proof=0a")))
	require.Equal(t, "unchanged", outcome(b.apply("core", "s@1 proof=0a")))
}

func TestS2_AChangeOfTheProofAloneIsAChange(t *testing.T) {
	claim(t, "2.proof.change", "134.proof")
	b := newBed(t)
	b.sync("core", "s@1")
	bind := b.reserve("core/s", "direct", "tool", false)
	digest := b.Scopes("core")[0].Record.Digest()
	for _, proof := range []string{"ab", "cd", ""} {
		line := "s@1"
		if proof != "" {
			line += " proof=" + proof
		}
		a := b.apply("core", line)
		require.Equal(t, "updated", outcome(a))
		require.Equal(t, digest, b.Scopes("core")[0].Record.Digest(), "the digest is public")
		require.Empty(t, a.Drains)
	}
	require.Equal(t, StaleChanged, b.Commit(bind))
}

func TestS2_TheHashStaysOutOfEveryForm(t *testing.T) {
	claim(t, "2.proof.secret")
	b := newBed(t)
	a := b.sync("core", "s@1 proof=ab12", "t@1 proof=ab12 delegates")
	rec := b.Scopes("core")[0].Record
	texts := []string{
		string(a.AppendReply(nil)), string(b.describe("core/s").AppendReply(nil, true)), b.dump(),
		fmt.Sprintf("%v %+v %#v %x %s", rec, rec, rec, rec.BindProof, rec.BindProof), string(rec.Canonical(nil)),
	}
	for _, text := range texts {
		require.NotContains(t, text, "ab12ab12", text)
		require.NotContains(t, text, "171 18", text)
		require.NotContains(t, text, "0xab", text)
	}
}

func TestS2_KindIsClosedAndFixedWithinAnEpoch(t *testing.T) {
	claim(t, "2.kind.closed", "2.kind.fixed")
	for _, bad := range []string{`"Head"`, `"flow"`, `""`, `null`, `1`, `{"head":null}`} {
		_, refused := DecodeSync([]byte(syncBody(1, `{"ref":"s","scope_epoch":1,"kind":`+bad+`}`)))
		require.NotNil(t, refused, bad)
		require.Contains(t, refused.Message, "kind", bad)
	}
	b := newBed(t)
	b.sync("core", "s@1 head")
	a := b.sync("core", "s@1 worker")
	require.Equal(t, "scope_kind_changed", outcome(a))
	require.Equal(t, Head, b.describe("core/s").Scope.Kind)
	require.Equal(t, "replaced", outcome(b.sync("core", "s@2 worker")))
	require.Equal(t, Worker, b.describe("core/s").Scope.Kind)
}

func TestS2_CarrierTargetsHold1To16(t *testing.T) {
	claim(t, "2.targets.bounds")
	list := func(n int) string {
		return "aft->" + strings.Join(repeat(n, func(i int) string { return fmt.Sprintf("m%d", i) }), ",")
	}
	b := newBed(t)
	a := b.sync("core", "none@1 carrier="+list(0), "one@1 carrier="+list(1), "max@1 carrier="+list(16),
		"many@1 carrier="+list(17), "second@1 carrier=direct carrier="+list(0),
		"twice@1 carrier=aft->"+strings.Repeat("m,", 16)+"m")
	require.Equal(t, []string{
		"scope_carrier_targets_invalid", "created", "created", "scope_carrier_targets_invalid",
		"scope_carrier_targets_invalid", "scope_carrier_targets_invalid",
	}, outcomesOf(a))
	require.Contains(t, a.Results[0].Message, "targets")
}

func TestS2_EntriesOfOnePrincipalAddUp(t *testing.T) {
	claim(t, "2.targets.sum")
	b := newBed(t)
	b.sync("core", "s@1 carrier=aft->a carrier=aft->b", "t@1 carrier=aft->a carrier=aft")
	list := b.Scopes("core")
	aft, direct := ReservedPrincipal("aft"), Principal{Kind: Direct}
	for module, want := range map[string]bool{"a": true, "b": true, "c": false} {
		require.Equal(t, want, list[0].Record.Permits(aft, module), module)
	}
	require.True(t, list[1].Record.Permits(aft, "c"))
	require.False(t, list[1].Record.Permits(direct, "a"))
}

func TestS2_GatedAttributesNeedAnAuthorityOwner(t *testing.T) {
	claim(t, "2.gate", "2.gate.rest", "2.expires.any")
	b := newBed(t)
	b.sync("core", "p@1 child=hist")
	for i, attr := range []string{"agent=a", "delegates", "agent=a delegates", "flow=f", "agent=a run=r"} {
		a := b.apply2(i == 0, "hist", "s@1 "+attr)
		require.Equal(t, "scope_attribute_not_permitted", outcome(a), attr)
		if attr == "delegates" {
			attr = "agent=a delegates"
		}
		require.Equal(t, "created", outcome(b.apply("core", fmt.Sprintf("g%d@1 %s", i, attr))), attr)
	}
	for _, kind := range []string{"head", "worker", "ephemeral"} {
		a := b.apply("hist", fmt.Sprintf("%s@1 %s parent=core/p@1 child=core carrier=direct carrier=aft->m expires=%d", kind, kind, start+1))
		require.Equal(t, "created", outcome(a), kind)
		require.False(t, b.describe("hist/"+kind).Scope.OwnerAuthorized)
	}
	require.True(t, b.describe("core/p").Scope.OwnerAuthorized)
	empty := b.apply("hist", `{"ref":"e","scope_epoch":1,"kind":"head","attributes":{"delegates":false,"agent_id":null}}`)
	require.Equal(t, "created", outcome(empty))
}

func TestS2_AttributesPast4KiBRefuseTheWholeCall(t *testing.T) {
	claim(t, "2.bound.attributes")
	agent := func(n int) string { return "s@1 agent=" + strings.Repeat("a", n) }
	fits := MaxAttributeBytes - len(`{"agent_id":""}`)
	b := newBed(t)
	b.sync("hist")
	require.Equal(t, "created", outcome(b.sync("core", agent(fits))))
	require.Contains(t, b.refusedSync(CodeAttributesTooLarge, "core", "ok@1", agent(fits+1)), `"s"`)
	require.Contains(t, b.refusedApply(CodeAttributesTooLarge, "core", "ok@1", agent(fits+1)), `"s"`)
	b.refusedSync(CodeAttributesTooLarge, "hist", agent(fits+1)) // before the authority gate
}

func TestS2_TokensAreCheckedForTheWholeCallByName(t *testing.T) {
	claim(t, "2.token", "2.flow.alone")
	b := newBed(t)
	b.sync("core", "s@1", "ok@1 flow="+strings.Repeat("f", 256), "also@1 flow=!~")
	for _, bad := range []string{"", " ", "a b", "\t", "é", "\u007f", "\n", strings.Repeat("f", 257)} {
		for _, name := range []string{"flow_id", "run_id"} {
			rec := fmt.Sprintf(`{"ref":"s","scope_epoch":1,"kind":"head","attributes":{"agent_id":"a",%q:%s}}`, name, appendString(nil, bad))
			require.Contains(t, b.refusedApply(CodeInvalidControlBody, "core", "new@1", rec), name, "%q", bad)
			require.Contains(t, b.refusedSync(CodeInvalidControlBody, "core", rec), name, "%q", bad)
		}
	}
	require.Equal(t, "created", outcome(b.apply("core", "alone@1 flow=x")))
}

func TestS2_RunRules(t *testing.T) {
	claim(t, "2.run.agent", "2.run.flow", "2.run.delegates")
	b := newBed(t)
	a := b.sync("core", "a@1 run=r", "b@1 agent=a run=r flow=f", "c@1 agent=a run=r delegates", "d@1 run=r flow=f", "e@1 delegates run=r")
	require.Equal(t, []string{
		"scope_run_id_without_agent", "scope_run_id_with_flow_id", "created", "scope_run_id_without_agent", "scope_delegates_without_agent",
	}, outcomesOf(a))
}

func TestS2_AttributesAreStampedVerbatim(t *testing.T) {
	claim(t, "2.stamp.verbatim")
	b := newBed(t)
	b.sync("core", "f@1 agent=A/1 flow=f:7", "r@1 ephemeral agent=A/1 run=~r delegates")
	require.Contains(t, string(b.describe("core/f").Scope.AppendJSON(nil)), `"attributes":{"agent_id":"A/1","flow_id":"f:7"}`)
	require.Contains(t, string(b.describe("core/r").Scope.AppendJSON(nil)), `"attributes":{"agent_id":"A/1","delegates":true,"run_id":"~r"}`)
}
