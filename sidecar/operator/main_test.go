package operator

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(strangerEnv); path != "" {
		stranger(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// newTestJournal is a journal whose lines are observed from level on.
func newTestJournal(t testing.TB, level zapcore.Level) (*Journal, *observer.ObservedLogs) {
	core, logs := observer.New(level)
	j := NewJournal(JournalParams{Log: zap.New(core), Metrics: NewMetrics()})
	t.Cleanup(func() { require.NoError(t, j.Close(context.Background())) })
	return j, logs
}

// written ends the journal's writer, so that every line owed is there.
func written(t testing.TB, j *Journal) {
	t.Helper()
	require.NoError(t, j.Close(context.Background()))
}

// fakeProxy is a proxy with sessions of the test's choice.
type fakeProxy struct {
	world    *proxy.World
	sessions []proxy.SessionInfo
	relayed  proxy.RelayTimes
	evicted  func(conn proxy.ConnID, match func(table.ScopeID) bool) int
}

func (p *fakeProxy) RelayTimes() proxy.RelayTimes                 { return p.relayed }
func (p *fakeProxy) World() *proxy.World                          { return p.world }
func (p *fakeProxy) Connections() int                             { return len(p.sessions) }
func (p *fakeProxy) Sessions(context.Context) []proxy.SessionInfo { return p.sessions }
func (p *fakeProxy) Evict(_ context.Context, conn proxy.ConnID, match func(table.ScopeID) bool) int {
	return p.evicted(conn, match)
}

// fakeLaunches knows processes by connection, and a roster.
type fakeLaunches struct {
	processes  map[proxy.ConnID]launch.Process
	info       launch.Info
	configured map[string]bool
}

func (l *fakeLaunches) Peer(id proxy.ConnID) launch.Process { return l.processes[id] }
func (l *fakeLaunches) Info() launch.Info                   { return l.info }
func (l *fakeLaunches) Ask(q proxy.Question, reply func(proxy.Answer)) {
	reply(proxy.Answer{Configured: l.configured[q.ModuleID]})
}

// testServer is a served API with what stands behind it.
type testServer struct {
	*Server
	*api.Client
	journal  *Journal
	proxy    *fakeProxy
	launches *fakeLaunches
	state    *State
	logs     *observer.ObservedLogs
	socket   string
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	j, logs := newTestJournal(t, zap.DebugLevel)
	s := &testServer{
		journal: j, logs: logs, proxy: &fakeProxy{}, launches: &fakeLaunches{}, state: &State{},
		socket: filepath.Join(shortDir(t), "s"),
	}
	s.state.Attribution = api.Attribution{Mode: "off", Source: sourceNone}
	state := func() State { return *s.state }
	l, err := Listen(t.Context(), s.socket)
	require.NoError(t, err)
	front := mustListen(t)
	s.Server, err = NewServer(t.Context(), Params{
		Ledger: fakeLedger{},
		Log:    j.log, Journal: j, Metrics: j.metrics, Proxy: s.proxy, Launches: s.launches, State: state, Listener: l,
		Prober: NewProber(ProberParams{Addr: front.Addr().String(), World: s.proxy.World, State: state}),
	})
	require.NoError(t, err)
	s.Client = api.NewClient(s.socket)
	t.Cleanup(func() {
		s.Client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Server.Close(ctx))
	})
	return s
}

// mustListen is a loopback port that closes whoever comes.
func mustListen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l
}

// shortDir is a folder whose path fits into a socket's.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "op")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func scopeID(owner, ref string, epoch uint64) table.ScopeID {
	return table.ScopeID{Key: table.Key{Owner: table.ReservedPrincipal(owner), Ref: ref}, Epoch: epoch}
}

// fakeLedger is a file of a few bytes.
type fakeLedger struct{}

func (fakeLedger) Snapshot(w io.Writer) error {
	_, err := io.WriteString(w, "a ledger")
	return err
}
