package admission

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

// onlyIfIdle proposes a higher epoch of ref that takes nothing over.
func (w *world) onlyIfIdle(ref string) table.RecordResult {
	w.t.Helper()
	applied := w.trySync("core", recordAt(ref, 6, directCarries, `"replace_only_if_idle":true`))
	return applied.Results[0]
}

// requireIdle requires that nothing is reserved under core's ref.
func requireIdle(t testing.TB, w *world, ref string) {
	t.Helper()
	require.Equal(t, table.Replaced, w.onlyIfIdle(ref).Outcome)
}

func requireInUse(t testing.TB, w *world, ref string) {
	t.Helper()
	r := w.onlyIfIdle(ref)
	require.Equal(t, table.Refused, r.Outcome)
	require.Equal(t, table.CodeEpochInUse, r.Code)
}

func TestS4_AdmissionReservesUsageAndCapturesTheTag(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	d := w.admit("s")
	requireAdmitted(t, d)
	require.Equal(t, "4 admission", d.Rule)
	require.Equal(t, table.ScopeID{Key: table.Key{Owner: core, Ref: "s"}, Epoch: 5}, d.Tag.ScopeID)
	require.NotZero(t, d.Tag.Version)
	requireInUse(t, w, "s")
	require.True(t, w.table.Release(d.Route))
	requireIdle(t, w, "s")
}

func TestS4_ARefusedOpenReservesNothing(t *testing.T) {
	for _, b := range breakages() {
		t.Run(b.rule, func(t *testing.T) {
			w, good := orderWorld(t)
			hold := func(a *Ask) { a.Selector.HoldPresence = true }
			ref := map[bool]string{false: "flow", true: "run"}[b.rule == "4 run gate"]
			require.Equal(t, Refused, w.admit(ref, good, hold, b.ask).Verdict)
			requireIdle(t, w, ref)
		})
	}
}

func TestS4_AskingForTheRosterReservesNothing(t *testing.T) {
	w := newTestWorld(t)
	require.Equal(t, NeedRoster, w.admit("s").Verdict)
	w.sync("core", record("s", directCarries))
	requireIdle(t, w, "s")
}

func TestS4_ExplainSaysWhatAdmitWouldAndReservesNothing(t *testing.T) {
	w, good := orderWorld(t)
	everything := append(breakages(),
		breakage{rule: "none", ask: func(*Ask) {}},
		breakage{rule: "roster", ask: of(plain)})
	for _, b := range everything {
		for _, ref := range []string{"flow", "run"} {
			a := w.ask(ref, good, b.ask)
			explained := Explain(w.table, a)
			require.Zero(t, explained.Route)

			nobody := a
			nobody.Opener, nobody.Provider = table.Peer{}, table.Peer{}
			require.Equal(t, explained, Explain(w.table, nobody), "an operator is no peer")

			decided := Admit(w.table, a)
			if decided.Verdict == Admitted {
				require.True(t, w.table.Release(decided.Route))
				decided.Route = 0
			}
			require.Equal(t, decided, explained, b.rule)
		}
	}
	Explain(w.table, w.ask("flow", good))
	requireIdle(t, w, "flow")
}

func TestS4_EveryAdmissionIsARouteOfItsOwn(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	seen := map[table.RouteID]bool{}
	for range 50 {
		d := w.admit("s")
		requireAdmitted(t, d)
		require.False(t, seen[d.Route])
		seen[d.Route] = true
	}
}

func TestS4_CommitOfAnUnchangedRecordMakesTheRouteLive(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	d := w.admit("s")
	w.sync("core", record("s", directCarries), record("another"))
	require.Equal(t, d, Commit(w.table, d))
	applied := w.sync("core")
	require.Len(t, applied.Drains, 1, "a live route is drained when its scope ends")
	require.Equal(t, d.Route, applied.Drains[0].Route)
}

func TestS4_AScopeThatChangedBeforeTheCommitIsRefusedRetryable(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	d, same := w.admit("s"), w.admit("s")
	w.sync("core", record("s", directCarries, `"attributes":{"agent_id":"a"}`))
	for _, admitted := range []Decision{d, same} {
		stale := Commit(w.table, admitted)
		requireRefused(t, CodeChanged, "4 commit", stale)
		require.True(t, stale.Code.Retryable())
		require.Contains(t, stale.Message, `"s"`)
		require.False(t, w.table.Release(admitted.Route), "a stale commit released it")
	}
	again := w.admit("s")
	require.Equal(t, Admitted, Commit(w.table, again).Verdict)
}

func TestS4_AScopeThatEndedBeforeTheCommitIsRefusedTerminal(t *testing.T) {
	for name, end := range map[string]func(*world){
		"omitted":  func(w *world) { w.sync("core") },
		"replaced": func(w *world) { w.sync("core", recordAt("s", 6, directCarries)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.sync("core", record("s", directCarries))
			d := w.admit("s")
			end(w)
			stale := Commit(w.table, d)
			requireRefused(t, CodeEnded, "4 commit", stale)
			require.False(t, stale.Code.Retryable())
			require.Contains(t, stale.Message, `"s"`)
		})
	}
}

func TestS4_ACommitOfWhatIsGoneAnswersNobody(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries))
	d := w.admit("s")
	w.table.Leave(w.opener)
	require.Equal(t, Decision{Rule: "4 commit"}, Commit(w.table, d))
	require.Equal(t, Decision{Rule: "4 commit"}, Commit(w.table, Decision{}))
}

func BenchmarkAdmit(b *testing.B) {
	for _, held := range []int{1, 10_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			w := newTestWorld(b)
			proof, hash := secret(1)
			records := make([]string, held)
			for i := range records {
				records[i] = record(fmt.Sprintf("s%d", i), hash, directCarries, `"attributes":{"agent_id":"a","flow_id":"f"}`)
			}
			w.sync("core", records...)
			asks := make([]Ask, held)
			for i := range asks {
				asks[i] = w.ask(fmt.Sprintf("s%d", i), proving(proof), declaring(CallModes))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				d := Admit(w.table, asks[i%held])
				if d.Verdict != Admitted {
					b.Fatal(d.Message)
				}
				w.table.Release(d.Route)
			}
		})
	}
}
