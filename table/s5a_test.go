package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestS5a_Refusals has one case for each refusal row that the table decides.
func TestS5a_Refusals(t *testing.T) {
	claim(t, "5a.refusals")
	held := []string{"p@1", "s@5 carrier=direct", due("d@1", 10), "gone@1"}
	perRecord := map[Code]string{
		CodeEpochRegressed:        "s@4",
		CodeAttributeNotPermitted: "unlisted@1 agent=a",
		CodeCarrierTargetsInvalid: "n@1 carrier=aft->",
		CodeDelegatesWithoutAgent: "n@1 delegates",
		CodeRunIDWithoutAgent:     "n@1 run=r",
		CodeRunIDWithFlowID:       "n@1 agent=a run=r flow=f",
		CodeParentNotPermitted:    "n@1 parent=core/p@2",
		CodeKindChanged:           "s@5 worker",
		CodeEpochEnded:            "gone@1",
		CodeExpired:               due("n@1", 0),
		CodeExpiryImmutable:       due("s@5", 10),
		CodeExpiryTooFar:          due("n@1", MaxExpiryAheadMS+1),
		CodeEpochInUse:            "s@6 idle",
	}
	for code, line := range perRecord {
		t.Run(string(code), func(t *testing.T) {
			b := newBed(t)
			b.sync("core", held...)
			b.apply("core", "end gone@1")
			b.sync("hist")
			b.reserve("core/s", "direct", "tool", false)
			owner := "core"
			if code == CodeAttributeNotPermitted {
				owner = "hist"
			}
			before := b.version("core/s")
			a := b.apply(owner, line, "rest@1")
			require.Equal(t, []string{string(code), "created"}, outcomesOf(a))
			require.NotEmpty(t, a.Results[0].Message)
			require.Equal(t, before, b.version("core/s"))
			a = b.sync(owner, append([]string{line}, without(held, line)...)...)
			require.Equal(t, code, a.Results[0].Code, "a full sync refuses it the same")
			require.Contains(t, string(a.AppendReply(nil)), fmt.Sprintf(`"outcome":"refused","code":%q,"message":`, code))
		})
	}
	whole := map[Code]func(b *bed){
		CodeSyncNotAuthority: func(b *bed) {
			_, refused := b.trySync(Claim{Peer: b.peer("x"), Owner: "core"}, 9)
			require.Equal(t, CodeSyncNotAuthority, refused.Code)
		},
		CodeSyncRequired: func(b *bed) { b.refusedApply(CodeSyncRequired, "new") },
		CodeSyncStale: func(b *bed) {
			_, refused := b.trySync(b.claim("core"), 0)
			require.Equal(t, CodeSyncStale, refused.Code)
			require.Contains(t, refused.Message, "generation 0")
		},
		CodeInvalidControlBody: func(b *bed) { b.refusedApply(CodeInvalidControlBody, "core", "a@1", "a@2") },
		CodeLiveLimitExceeded: func(b *bed) {
			b.refusedSync(CodeLiveLimitExceeded, "core", repeat(MaxEntries+1, func(i int) string { return fmt.Sprintf("s%d@1", i) })...)
		},
		CodeAttributesTooLarge: func(b *bed) { b.refusedSync(CodeAttributesTooLarge, "core", fmt.Sprintf("a@1 agent=%05000d", 1)) },
	}
	for code, refuse := range whole {
		t.Run(string(code), func(t *testing.T) {
			b := newBed(t)
			b.sync("core", held...)
			refuse(b)
		})
	}
}

// without is lines without the one of the same ref as line's.
func without(lines []string, line string) []string {
	ref, _ := splitEpoch(line)
	rest := []string{}
	for _, l := range lines {
		if r, _ := splitEpoch(l); r != ref && r != "gone" {
			rest = append(rest, l)
		}
	}
	return rest
}

func TestS5a_ARecordsChecksRunInTheRoutersOrder(t *testing.T) {
	claim(t, "5a.refusals")
	b := newBed(t)
	b.sync("core", due("s@5 carrier=direct", 100), due("gone@1", 100))
	b.apply("core", "end gone@1")
	b.sync("hist")
	b.open("core/s", "direct", "tool")
	for _, c := range []struct {
		owner, line string
		want        Code
	}{
		{"hist", "a@1 carrier=aft-> agent=a", CodeCarrierTargetsInvalid},
		{"hist", "a@1 delegates", CodeAttributeNotPermitted},
		{"core", "a@1 delegates run=r", CodeDelegatesWithoutAgent},
		{"core", "a@1 run=r flow=f", CodeRunIDWithoutAgent},
		{"core", "gone@1 agent=a run=r flow=f", CodeRunIDWithFlowID},
		{"core", "gone@1 worker", CodeEpochEnded},
		{"core", "gone@0", CodeEpochRegressed},
		{"core", due("s@4 worker", -5), CodeEpochRegressed},
		{"core", "s@5 worker", CodeKindChanged},
		{"core", due("s@5 proof=ab idle", -5), CodeExpiryImmutable},
		{"core", due("s@6 idle", -5), CodeExpired},
		{"core", due("s@6 idle", MaxExpiryAheadMS+1), CodeExpiryTooFar},
		{"core", "s@6 idle parent=core/absent@1", CodeEpochInUse},
		{"core", "s@6 parent=core/absent@1", CodeParentNotPermitted},
	} {
		require.Equal(t, string(c.want), outcome(b.apply(c.owner, c.line)), c.line)
	}
}

// TestS5a_Drains has one case for each row of the drain table. Each has a route
// of every kind open: the owner's, a bare carrier's to two modules, a targeted
// one's to two, and a direct peer's.
func TestS5a_Drains(t *testing.T) {
	claim(t, "5a.drains", "5a.none", "11.narrowing", "6.atomic")
	const base = "agent=a delegates carrier=bare carrier=aft->x,y carrier=direct"
	all := func(reason string) map[string]string {
		m := map[string]string{}
		for _, r := range []string{"owner x", "bare x", "bare y", "aft x", "aft y", "direct x"} {
			m[r] = reason
		}
		return m
	}
	const removed = "scope_carrier_removed"
	for row, c := range map[string]struct {
		lines []string
		want  map[string]string
	}{
		"omitted or ended":             {[]string{"end s@1"}, all("scope_ended")},
		"replaced by a higher epoch":   {[]string{"s@2 parent=core/p@1 " + base}, all("scope_ended")},
		"a carrier entry removed":      {[]string{"s@1 parent=core/p@1 agent=a delegates carrier=aft->x,y carrier=direct"}, map[string]string{"bare x": removed, "bare y": removed}},
		"all carriers removed":         {[]string{"s@1 parent=core/p@1 agent=a delegates"}, map[string]string{"bare x": removed, "bare y": removed, "aft x": removed, "aft y": removed, "direct x": removed}},
		"a module removed from one":    {[]string{"s@1 parent=core/p@1 agent=a delegates carrier=bare carrier=aft->x carrier=direct"}, map[string]string{"aft y": removed}},
		"narrowed from any module":     {[]string{"s@1 parent=core/p@1 agent=a delegates carrier=bare->y carrier=aft->x,y carrier=direct"}, map[string]string{"bare x": removed}},
		"delegates true to false":      {[]string{"s@1 parent=core/p@1 agent=a carrier=bare carrier=aft->x,y carrier=direct"}, all("scope_delegation_changed")},
		"agent_id changed":             {[]string{"s@1 parent=core/p@1 agent=b delegates carrier=bare carrier=aft->x,y carrier=direct"}, all("scope_delegation_changed")},
		"flow_id added":                {[]string{"s@1 parent=core/p@1 flow=f " + base}, all("scope_delegation_changed")},
		"run_id added":                 {[]string{"s@1 parent=core/p@1 run=r " + base}, all("scope_delegation_changed")},
		"the parent ended":             {[]string{"end p@1"}, all("scope_parent_ended")},
		"none: unchanged":              {[]string{"s@1 parent=core/p@1 " + base}, nil},
		"none: child_owners changed":   {[]string{"s@1 parent=core/p@1 child=hist " + base}, nil},
		"none: a carrier added":        {[]string{"s@1 parent=core/p@1 carrier=new carrier=unverified " + base}, nil},
		"none: a target added":         {[]string{"s@1 parent=core/p@1 agent=a delegates carrier=bare carrier=aft->x,y,z carrier=direct"}, nil},
		"none: widened to any module":  {[]string{"s@1 parent=core/p@1 agent=a delegates carrier=bare carrier=aft carrier=direct"}, nil},
		"none: one entry split in two": {[]string{"s@1 parent=core/p@1 agent=a delegates carrier=bare carrier=aft->x carrier=aft->y carrier=direct"}, nil},
		"none: the proof changed":      {[]string{"s@1 parent=core/p@1 proof=ab " + base}, nil},
		"none: the parent dropped":     {[]string{"s@1 " + base}, nil},
		"none: the owner lists itself": {[]string{"s@1 parent=core/p@1 carrier=core->z " + base}, nil},
		"none: refused":                {[]string{"s@1 worker parent=core/p@1"}, nil},
		"none: an end at another":      {[]string{"end s@2"}, nil},
		"one reason: parent and more":  {[]string{"end p@1", "s@1 parent=core/p@1 agent=b"}, all("scope_parent_ended")},
		"one reason: delegation first": {[]string{"s@1 parent=core/p@1 agent=b"}, all("scope_delegation_changed")},
		"one reason: ended beats all":  {[]string{"end p@1", "s@2 agent=b"}, all("scope_ended")},
		"one reason: parent beats one": {[]string{"end p@1", "s@1 parent=core/p@1 agent=a delegates carrier=bare carrier=direct"}, all("scope_parent_ended")},
	} {
		t.Run(row, func(t *testing.T) {
			claim(t, "11.one-reason")
			b := newBed(t)
			b.sync("core", "p@1", "s@1 parent=core/p@1 "+base, "other@1 carrier=bare carrier=direct")
			routes := map[string]RouteID{
				"owner x": b.open("core/s", "core", "x"), "bare x": b.open("core/s", "bare", "x"), "bare y": b.open("core/s", "bare", "y"),
				"aft x": b.open("core/s", "aft", "x"), "aft y": b.open("core/s", "aft", "y"), "direct x": b.open("core/s", "direct", "x"),
			}
			elsewhere := b.open("core/other", "bare", "x")
			want := map[RouteID]string{}
			for name, reason := range c.want {
				want[routes[name]] = reason
			}
			a := b.apply("core", c.lines...)
			require.Equal(t, want, drained(a.Drains))
			for _, d := range a.Drains {
				require.Equal(t, ScopeID{parseKey("core/s"), 1}, d.Scope)
				require.Contains(t, "xy", d.Module)
				require.NotZero(t, d.Opener)
			}
			for _, id := range routes {
				require.Equal(t, want[id] == "", b.Release(id), "a drained route is gone, any other stays")
			}
			require.True(t, b.Release(elsewhere))
		})
	}
}

func TestS5a_FlowAndRunChangedAndRemovedDrain(t *testing.T) {
	claim(t, "5a.drains", "5a.none")
	b := newBed(t)
	b.sync("core", "s@1 agent=a")
	for i, line := range []string{"s@1 agent=a flow=f", "s@1 agent=a flow=g", "s@1 agent=a", "s@1 agent=a run=f", "s@1 agent=a run=g", "s@1 agent=a", "s@1"} {
		r := b.open("core/s", "core", "tool")
		require.Equal(t, map[RouteID]string{r: "scope_delegation_changed"}, drained(b.apply("core", line).Drains), line)
		r = b.open("core/s", "core", "tool")
		require.Empty(t, b.apply("core", line).Drains, "%d unchanged", i)
		require.True(t, b.Release(r))
	}
	b.apply("core", "s@1 agent=a")
	r := b.open("core/s", "core", "tool")
	require.Empty(t, b.apply("core", "s@1 agent=a delegates").Drains, "false to true takes nothing away")
	require.True(t, b.Release(r))
}
