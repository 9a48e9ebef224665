package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/table"
)

// decisions is one decision of every kind.
func decisions() []proxy.Decision {
	var all []proxy.Decision
	for k := proxy.Admitted; k <= proxy.PeerRefused; k++ {
		all = append(all, proxy.Decision{
			Kind: k, AtMS: someMS, Conn: 4, Opener: 9, Principal: table.ReservedPrincipal("aft"), Scope: scopeID("core", "s", 3),
			Target: "tool", Rule: "4 rule", Code: "scope_code", Message: "why", Elapsed: time.Millisecond, Digest: table.Digest{1},
		})
	}
	return all
}

// One structured record for every decision, on every path.
func TestJournalWritesEveryKind(t *testing.T) {
	j, logs := newTestJournal(t, zap.InfoLevel)
	j.Attribute(&fakeLaunches{processes: map[proxy.ConnID]launch.Process{9: {PID: 77, Start: 1, Exe: "/bin/op\nener"}}})
	for _, d := range decisions() {
		j.Record(d)
	}
	written(t, j)
	require.Equal(t, len(decisions()), logs.Len())
	said := map[string]bool{}
	for i, line := range logs.All() {
		m := line.ContextMap()
		require.Equal(t, decisions()[i].Kind.String(), m["kind"])
		require.Equal(t, time.UnixMilli(someMS), line.Time)
		for key, want := range map[string]any{
			"conn": uint64(4), "opener": uint64(9), "principal": "reserved:aft", "pid": int64(77), "exe": `"/bin/op\nener"`,
			"owner": "reserved:core", "ref": "s", "epoch": uint64(3), "target": "tool", "rule": "4 rule", "code": "scope_code",
			"message": "why", "elapsed_us": int64(1000), "digest": table.Digest{1}.String(),
		} {
			require.Equal(t, want, m[key], key)
		}
		require.False(t, said[line.Message], "two kinds are worded alike: %s", line.Message)
		said[line.Message] = true
	}
	require.NotContains(t, said, "decided", "a kind has no wording of its own")
}

// Section 2, expiry: each logs a warning with the owner, ref, epoch, deadline and
// number of routes closed. None is left out, however many come at once.
func TestS2_EachExpiryIsAWarning(t *testing.T) {
	j, logs := newTestJournal(t, zap.WarnLevel)
	const n = 4 * linesQueued
	for i := range n {
		j.Record(proxy.Decision{Kind: proxy.Expired, AtMS: someMS, Scope: scopeID("core", fmt.Sprintf("s%d", i), uint64(i)), Deadline: someMS - 5, Routes: i % 2})
	}
	written(t, j)
	require.Equal(t, n, logs.Len())
	for i, line := range logs.All() {
		require.Equal(t, zap.WarnLevel, line.Level)
		m := line.ContextMap()
		require.Equal(t, "reserved:core", m["owner"])
		require.Equal(t, fmt.Sprintf("s%d", i), m["ref"])
		require.Equal(t, uint64(i), m["epoch"])
		require.Equal(t, int64(someMS-5), m["deadline_ms"])
		require.Equal(t, int64(i%2), m["routes"])
	}
	require.Zero(t, j.dropped())
}

// A caller's names neither forge a line nor fill one.
func TestJournalQuotesNames(t *testing.T) {
	j, logs := newTestJournal(t, zap.InfoLevel)
	j.Record(proxy.Decision{
		Kind: proxy.Refused, AtMS: someMS, Conn: 1, Principal: table.ReservedPrincipal("a\nb"),
		Scope: scopeID("o\"x", strings.Repeat("r", 1000), 1), Target: "t\x1b[2J",
	})
	written(t, j)
	m := logs.All()[0].ContextMap()
	require.Equal(t, `"reserved:a\nb"`, m["principal"])
	require.Equal(t, `"reserved:o\"x"`, m["owner"])
	require.Equal(t, `"`+strings.Repeat("r", 64)+`"...`, m["ref"])
	require.Equal(t, `"t\x1b[2J"`, m["target"])
}

// An opener that is refused again and again fills neither the log nor another's
// share of it; every refusal is kept and counted all the same.
func TestJournalLimitsAnOpener(t *testing.T) {
	j, logs := newTestJournal(t, zap.InfoLevel)
	const n = 5000
	for range n {
		j.Record(proxy.Decision{Kind: proxy.Refused, AtMS: someMS, Conn: 1, Opener: 7, Code: "scope_ended"})
	}
	j.Record(proxy.Decision{Kind: proxy.Refused, AtMS: someMS, Conn: 1, Opener: 8, Code: "scope_ended"})
	written(t, j)
	require.Equal(t, lineBurst+1, logs.FilterField(zap.String("kind", "refused")).Len())
	left := logs.FilterField(zap.Uint64("dropped", n-lineBurst))
	require.Equal(t, 1, left.Len())
	require.Equal(t, uint64(7), left.All()[0].ContextMap()["opener"])
	require.EqualValues(t, n-lineBurst, j.dropped())
	_, total := j.refusals.last(1, anyEvent)
	require.EqualValues(t, n+1, total)
	require.EqualValues(t, n+1, j.metrics.byKind()["refused"])
}

// stuckCore is a log that nobody reads.
type stuckCore struct {
	zapcore.Core
	release chan struct{}
}

func (c stuckCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

func (c stuckCore) Write(zapcore.Entry, []zapcore.Field) error {
	<-c.release
	return nil
}

// A log that is not read holds no decision up. What it misses is counted, and
// memory stays bounded.
func TestJournalDoesNotWaitForTheLog(t *testing.T) {
	core := stuckCore{zapcore.NewNopCore(), make(chan struct{})}
	core.Core = zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(&strings.Builder{}), zap.InfoLevel)
	j := NewJournal(JournalParams{Log: zap.New(core), Metrics: NewMetrics()})
	const n = 3 * linesQueued
	for i := range n {
		j.Record(proxy.Decision{Kind: proxy.Refused, AtMS: someMS, Conn: proxy.ConnID(i/10 + 1)})
	}
	require.GreaterOrEqual(t, j.dropped(), uint64(n-2*linesQueued), "the writer holds one batch, and one waits")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, j.Close(ended), context.Canceled, "nor does its end wait for longer than it is given")
	close(core.release)
	require.NoError(t, j.Close(t.Context()))
}

// What an accepted call did with single records is told, one by one.
func TestJournalTellsOfRecords(t *testing.T) {
	j, logs := newTestJournal(t, zap.InfoLevel)
	j.Record(proxy.Decision{Kind: proxy.Synced, AtMS: someMS, Conn: 2, Principal: table.ReservedPrincipal("core"), Applied: mustSync(t)})
	written(t, j)
	call := logs.FilterField(zap.String("kind", "synced")).All()[0].ContextMap()
	require.Equal(t, uint64(5), call["generation"])
	require.Equal(t, int64(1), call["created"])
	require.Equal(t, int64(1), call["refused"])
	refused := logs.FilterField(zap.String("kind", kindRecordRefused)).All()[0].ContextMap()
	require.Equal(t, "bad", refused["ref"])
	require.Equal(t, "scope_delegates_without_agent", refused["code"])
	accepted := logs.FilterField(zap.String("kind", kindRecordAccepted)).All()[0].ContextMap()
	require.Equal(t, "good", accepted["ref"])
	require.Equal(t, "created", accepted["message"])
	require.Len(t, accepted["digest"], 64)
	kept, _ := j.refusals.last(10, anyEvent)
	require.Len(t, kept, 1)
	require.Equal(t, "bad", kept[0].Ref)
}

// The log's level decides what it takes, not what is counted and kept.
func TestJournalAtALevel(t *testing.T) {
	j, logs := newTestJournal(t, zap.ErrorLevel)
	for _, d := range decisions() {
		if d.Kind != proxy.Expired {
			j.Record(d)
		}
	}
	written(t, j)
	require.Zero(t, logs.Len())
	require.Zero(t, j.dropped())
	_, total := j.refusals.last(1, anyEvent)
	require.EqualValues(t, 5, total)
}

func TestJournalCountsByRuleAndCode(t *testing.T) {
	j, _ := newTestJournal(t, zap.ErrorLevel)
	for range 3 {
		j.Record(proxy.Decision{Kind: proxy.Refused, Rule: "4 carrier", Code: "scope_not_carrier", Elapsed: time.Microsecond})
	}
	samples := scrape(t, j.metrics)
	require.Equal(t, "3", samples[`scopeward_decisions_total{code="scope_not_carrier",kind="refused",rule="4 carrier"}`])
	require.Equal(t, "3", samples["scopeward_admission_seconds_count"])
}

// However many rules and codes there should ever be, the series stay bounded.
func TestMetricsAreBounded(t *testing.T) {
	m := NewMetrics()
	for i := range 10 * maxSeries {
		m.count("refused", fmt.Sprint("rule ", i), "code")
	}
	n := 0
	for name := range scrape(t, m) {
		if strings.HasPrefix(name, "scopeward_decisions_total{") {
			n++
		}
	}
	require.LessOrEqual(t, n, maxSeries+1)
	require.GreaterOrEqual(t, n, maxSeries)
	require.EqualValues(t, 10*maxSeries, m.byKind()["refused"])
}
