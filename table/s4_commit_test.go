package table

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestS4_CommitComparesTheCapturedTag(t *testing.T) {
	claim(t, "4.commit", "4.commit.retry")
	changes := map[string]struct {
		lines []string
		want  Verdict
	}{
		"unchanged":           {[]string{"s@1 carrier=direct"}, Committed},
		"another scope":       {[]string{"o@1 child=hist"}, Committed},
		"a refused record":    {[]string{"s@1 worker carrier=direct"}, Committed},
		"a carrier added":     {[]string{"s@1 carrier=direct carrier=aft"}, StaleChanged},
		"a carrier removed":   {[]string{"s@1"}, StaleChanged},
		"ended":               {[]string{"end s@1"}, StaleEnded},
		"replaced":            {[]string{"s@2 carrier=direct"}, StaleEnded},
		"the link ended":      {[]string{"end p@1"}, StaleChanged},
		"an ineffective call": {[]string{"end s@9"}, Committed},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			scope := "core/s"
			b.sync("core", "s@1 carrier=direct", "o@1", "p@1", "k@1 parent=core/p@1")
			if name == "the link ended" {
				scope = "core/k"
			}
			standing := b.open("core/o", "core", "tool")
			id := b.reserve(scope, "core", "tool", false)
			b.apply("core", c.lines...)
			require.Equal(t, c.want, b.Commit(id))
			require.Equal(t, c.want == Committed, b.Release(id), "a refused commit has released everything")
			require.True(t, b.Release(standing), "the module's other routes stay up")
			require.Equal(t, map[Verdict]Code{StaleEnded: "scope_ended", StaleChanged: "scope_changed"}[c.want], c.want.Code())
		})
	}
}

func TestS4_AScopeEndedAndCreatedAgainIsEndedForTheBind(t *testing.T) {
	claim(t, "4.commit")
	b := newBed(t)
	b.sync("core", "s@1")
	id := b.reserve("core/s", "core", "tool", false)
	b.apply("core", "end s@1")
	b.apply("core", "s@2")
	require.Equal(t, StaleEnded, b.Commit(id))
}

func TestS4_ACommitHappensOnce(t *testing.T) {
	claim(t, "4.commit")
	b := newBed(t)
	b.sync("core", "s@1")
	id := b.reserve("core/s", "core", "tool", false)
	require.Equal(t, Committed, b.Commit(id))
	require.Equal(t, Gone, b.Commit(id))
	require.Equal(t, Gone, b.Commit(id+1))
	require.Equal(t, Gone, b.Commit(0))
	require.True(t, b.Release(id))
	require.False(t, b.Release(id))
	require.Equal(t, Gone, b.Commit(id))
}

func TestS4_ReserveCapturesTheTagAndReservesNothingUnlessAdmitted(t *testing.T) {
	claim(t, "4.commit")
	b := newBed(t)
	b.sync("core", "s@7")
	r := Reservation{Scope: parseKey("core/s"), Opener: b.peer("c"), Principal: parsePrincipal("direct"), Module: "tool", Provider: b.peer("m"), Hold: true}
	before := b.dump()
	_, _, ok := b.Reserve(r, func(s State) bool {
		require.True(t, s.Synced)
		require.Equal(t, uint64(7), s.Live.ID.Epoch)
		return false
	})
	require.False(t, ok)
	for _, absent := range []func(*Reservation){
		func(r *Reservation) { r.Opener = Peer{Conn: 99} },
		func(r *Reservation) { r.Provider = Peer{Conn: 99} },
		func(r *Reservation) { r.Scope.Ref = "other" },
		func(r *Reservation) { r.Scope.Owner = parsePrincipal("hist") },
	} {
		other := r
		absent(&other)
		_, _, ok := b.Reserve(other, func(State) bool { return true })
		require.False(t, ok)
	}
	require.Equal(t, before, b.dump())
	id, tag, ok := b.Reserve(r, func(State) bool { return true })
	require.True(t, ok)
	require.NotZero(t, id)
	require.Equal(t, Tag{ScopeID{parseKey("core/s"), 7}, b.version("core/s")}, tag)
}
