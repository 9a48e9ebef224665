package operator

import (
	"bufio"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/ledger"
)

// scrape is every sample by its name and labels.
func scrape(t testing.TB, m *Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	samples := map[string]string{}
	lines := bufio.NewScanner(w.Body)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, ' ')
			samples[line[:at]] = line[at+1:]
		}
	}
	return samples
}

// families are the names of our metrics, as a server with everything in it has
// them.
func families(t testing.TB) map[string]bool {
	t.Helper()
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	for _, d := range decisions() {
		s.journal.Record(d)
	}
	s.journal.Record(proxy.Decision{Kind: proxy.Synced, AtMS: someMS, Principal: scopeID("core", "", 0).Owner})
	s.journal.Mismatch(launch.Mismatch{Kind: proxy.AskHello})
	s.journal.metrics.WatchLedger(func() ledger.Stats { return ledger.Stats{} })
	names := map[string]bool{}
	for sample := range scrape(t, s.journal.metrics) {
		name, _, _ := strings.Cut(sample, "{")
		if strings.HasPrefix(name, namespace+"_") {
			names[name] = true
		}
	}
	return names
}

var metricName = regexp.MustCompile(`\bscopeward_[a-z_]+`)

// The dashboard and the alert rules name metrics that there are, and leave none
// out that there is.
func TestDashboardAndAlertsNameTheMetrics(t *testing.T) {
	there := families(t)
	named := map[string]bool{}
	for _, file := range []string{"../../deploy/grafana/scopeward.json", "../../deploy/prometheus/scopeward.rules.yaml"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		found := metricName.FindAllString(string(data), -1)
		require.NotEmpty(t, found, file)
		for _, name := range found {
			require.True(t, there[name], "%s names %s, which is not registered", file, name)
			named[name] = true
		}
	}
	for name := range there {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		require.True(t, named[name] || named[base+"_bucket"], "neither the dashboard nor an alert uses %s", name)
	}
}

func TestRelayTimesAreAHistogram(t *testing.T) {
	s := newTestServer(t)
	s.proxy.relayed = proxy.RelayTimes{Within: [proxy.RelayBuckets]uint64{1, 2, 4}, Over: 8, Sum: 1500 * time.Millisecond}
	samples := scrape(t, s.journal.metrics)
	for sample, want := range map[string]string{
		`_bucket{le="1e-06"}`: "1", `_bucket{le="4e-06"}`: "3", `_bucket{le="1.6e-05"}`: "7", `_bucket{le="4.194304"}`: "7",
		`_bucket{le="+Inf"}`: "15", "_count": "15", "_sum": "1.5",
	} {
		require.Equal(t, want, samples["scopeward_relay_seconds"+sample], sample)
	}
}

// A label's value is never a name that a caller chose, but for an owner's module
// id, which the router's roster bounds.
func TestMetricsHoldNoCallersNames(t *testing.T) {
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	s.journal.Record(proxy.Decision{
		Kind: proxy.Refused, Principal: scopeID("chosen", "", 0).Owner, Scope: scopeID("chosen", "chosen", 1),
		Target: "chosen", Message: "chosen", Rule: "4 carrier", Code: "scope_not_carrier",
	})
	s.journal.Mismatch(launch.Mismatch{ModuleID: "chosen", Reason: "chosen", Process: launch.Process{Exe: "chosen"}})
	samples := scrape(t, s.journal.metrics)
	require.Equal(t, "1", samples[`scopeward_owner_scopes{owner="core"}`])
	for name := range samples {
		require.NotContains(t, name, "chosen")
	}
}
