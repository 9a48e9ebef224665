package admission

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

func unnamed(a *Ask) { a.Selector.Epoch = nil }

func TestS4_EveryOpenerNamesTheEpochTheOwnerIncluded(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	for _, p := range []table.Principal{core, direct} {
		requireRefused(t, CodeEpochRequired, "4 epoch named", w.admit("s", by(p), unnamed))
		requireAdmitted(t, w.admit("s", by(p)))
	}
}

func TestS4_NotSyncedIsRetryableAndOnlyForAConfiguredOwner(t *testing.T) {
	w := newTestWorld(t)
	d := w.admit("s")
	require.Equal(t, Decision{Verdict: NeedRoster, Rule: "4 owner synced"}, d)

	requireRefused(t, CodeNotSynced, "4 owner synced", w.admit("s", roster(Configured)))
	require.True(t, CodeNotSynced.Retryable())
	requireRefused(t, CodeNotLive, "4 owner synced", w.admit("s", roster(NotConfigured)))
	require.False(t, CodeNotLive.Retryable())

	w.sync("core")
	for _, r := range []Roster{Unknown, Configured, NotConfigured} {
		requireRefused(t, CodeNotLive, "4 ref live", w.admit("s", roster(r)))
	}
}

func TestS4_AnOwnerThatHasSyncedNeedsNoRoster(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	for _, r := range []Roster{Unknown, Configured, NotConfigured} {
		requireAdmitted(t, w.admit("s", roster(r)))
	}
	require.Equal(t, NeedRoster, w.admit("s", of(plain)).Verdict, "another owner's sync says nothing of plain")
}

func TestS2_OnlyAModuleOwnsAScope(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	for _, owner := range []table.Principal{direct, {Kind: table.Unverified}, {}} {
		for _, r := range []Roster{Unknown, Configured} {
			d := w.admit("s", of(owner), by(owner), roster(r))
			requireRefused(t, CodeNotLive, "4 owner synced", d)
		}
	}
}

func TestS2_TheSameRefUnderTwoOwnersIsTwoScopes(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	w.sync("plain", recordAt("s", 9, directCarries))
	requireAdmitted(t, w.admit("s"))
	requireAdmitted(t, w.admit("s", of(plain), at(9)))
	requireRefused(t, CodeEnded, "4 epoch live", w.admit("s", of(plain)))
}

func TestS4_ARefThatIsNotInTheSetIsNotLive(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	requireRefused(t, CodeNotLive, "4 ref live", w.admit("S"))
	w.sync("core")
	requireRefused(t, CodeNotLive, "4 ref live", w.admit("s"))
}

func TestS4_AnotherEpochThanTheLiveOneIsEnded(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	for _, epoch := range []uint64{0, 4, 6, 1<<64 - 1} {
		d := w.admit("s", at(epoch))
		requireRefused(t, CodeEnded, "4 epoch live", d)
		require.Contains(t, d.Message, `"s"`)
		require.Contains(t, d.Message, strconv.FormatUint(epoch, 10))
	}
}

func TestS2_APassedDeadlineRefusesNamingRefAndDeadlineAndChangesNothing(t *testing.T) {
	w := newTestWorld(t)
	deadline := now + 60_000
	ms := strconv.FormatInt(deadline, 10)
	w.sync("core", record("s", directCarries, `"expires_at_ms":`+ms), record("forever", directCarries))

	requireAdmitted(t, w.admit("s", when(deadline-1)))
	for _, late := range []int64{deadline, deadline + 1, 1<<63 - 1} {
		d := w.admit("s", when(late))
		requireRefused(t, CodeNotLive, "2 deadline ahead", d)
		require.Contains(t, d.Message, `"s"`)
		require.Contains(t, d.Message, ms)
		require.Equal(t, table.StatusLive, w.table.Describe(table.Key{Owner: core, Ref: "s"}).Status)
		requireAdmitted(t, w.admit("forever", when(late)))
	}
	requireAdmitted(t, w.admit("s", when(deadline-1)))
	requireAdmitted(t, w.admit("s", when(-1)))
}

func TestS4_OnlyTheOwnerOrAListedCarrierIsAdmitted(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core",
		record("own"),
		record("direct", directCarries),
		record("mate", `"carriers":[{"principal":{"kind":"reserved","module_id":"mate"}}]`))
	everyone := []table.Principal{core, mate, plain, direct, {Kind: table.Unverified}, {}}
	for ref, admitted := range map[string][]table.Principal{
		"own":    {core},
		"direct": {core, direct},
		"mate":   {core, mate},
	} {
		for _, p := range everyone {
			d := w.admit(ref, by(p))
			if contains(admitted, p) {
				requireAdmitted(t, d)
			} else {
				requireRefused(t, CodeNotCarrier, "4 carrier", d)
			}
		}
	}
}

func contains(ps []table.Principal, p table.Principal) bool {
	for _, q := range ps {
		if q == p {
			return true
		}
	}
	return false
}

func TestS4_ATargetedCarrierIsAdmittedToItsListedModulesOnly(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", `"carriers":[{"principal":{"kind":"direct"},"targets":["tool","core"]}]`))
	requireAdmitted(t, w.admit("s", to("tool")))
	requireAdmitted(t, w.admit("s", to("core")))
	for _, module := range []string{"other", "", "Tool", "tool "} {
		requireRefused(t, CodeNotCarrier, "4 carrier", w.admit("s", to(module)))
		requireAdmitted(t, w.admit("s", to(module), by(core)))
	}
}

func TestS4_ARefusalForWantOfACarrierNamesTheTarget(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s"))
	d := w.admit("s")
	for _, name := range []string{`"s"`, `"core"`, `"tool"`, "direct"} {
		require.Contains(t, d.Message, name)
	}
}

func TestS4_AnOpenerOrAProviderThatIsGoneReservesNothing(t *testing.T) {
	for name, gone := range map[string]func(*world) table.Peer{
		"opener":   func(w *world) table.Peer { return w.opener },
		"provider": func(w *world) table.Peer { return w.provider },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.sync("core", record("s", directCarries))
			w.table.Leave(gone(w))
			requireRefused(t, CodeUnsupported, "4 reservation", w.admit("s"))
			requireIdle(t, w, "s")
		})
	}
}

func TestCallersNamesAreQuotedEscapedAndCut(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core")
	long := strings.Repeat("é", 64)
	for ref, shown := range map[string]string{
		"a\nWARN forged":           `"a\nWARN forged"`,
		`" and more`:               `"\" and more"`,
		"\u202egnp.exe":            `"\u202egnp.exe"`,
		long:                       `"` + long + `"`,
		long + "x":                 `"` + long + `"...`,
		"\xff" + long:              `"\xff` + long[:len(long)-2] + `"...`,
		strings.Repeat("\x00", 65): `"` + strings.Repeat(`\x00`, 64) + `"...`,
	} {
		d := w.admit(ref)
		requireRefused(t, CodeNotLive, "4 ref live", d)
		require.Contains(t, d.Message, "scope "+shown+" of ")
		require.NotContains(t, d.Message, "\n")
	}
	for _, a := range []Ask{w.ask("s", of(table.ReservedPrincipal(long+"x")), roster(Configured)), w.ask("s", of(table.ReservedPrincipal(long+"x")), roster(NotConfigured))} {
		require.Contains(t, Explain(w.table, a).Message, long+`"...`)
	}
}
