package proxy

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// front is a server in front of a stub router, on loopback, and the file that
// leads to it.
type front struct {
	t      testing.TB
	router *routertest.Router
	server *Server
	file   string
	facts  *stubFacts
}

// stubFacts believes every nonce: who is who is another package's matter.
type stubFacts struct{ closed chan ConnID }

func (f *stubFacts) Accepted(ConnID, Socket, bool) bool { return true }
func (f *stubFacts) Closed(id ConnID) {
	select {
	case f.closed <- id:
	default:
	}
}
func (f *stubFacts) Registered(ConnID, string, string) {}
func (f *stubFacts) Severed(ConnID)                    {}
func (f *stubFacts) Unregistered(ConnID)               {}
func (f *stubFacts) Record(Decision)                   {}
func (f *stubFacts) Ask(q Question, reply func(Answer)) {
	reply(Answer{Configured: true, Current: true, Launch: 1})
}

func newFront(t testing.TB) *front { return newFrontWith(t, nil) }

// newFrontWith is newFront whose peers are told to peers, nil for its own facts.
func newFrontWith(t testing.TB, peers Peers) *front {
	router, err := routertest.NewRouter(routertest.Config{Modules: []routertest.ModuleConfig{{ID: "owner"}, {ID: "tool"}}})
	require.NoError(t, err)
	t.Cleanup(router.Close)
	key, id := make([]byte, 32), make([]byte, 16)
	rand.Read(key)
	rand.Read(id)
	f := &front{t: t, router: router, facts: &stubFacts{closed: make(chan ConnID, 1024)}, file: filepath.Join(t.TempDir(), "c.json")}
	if peers == nil {
		peers = f.facts
	}
	f.server, err = NewServer(Params{
		Log: zap.NewNop(), Peers: peers, Launches: f.facts, Recorder: f.facts,
		Key: key, DaemonID: id, AuthorityOwners: []string{"owner"},
	})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, f.server.Serve(l))
	up := router.File()
	f.server.Attach(Upstream{Addr: up.Endpoints[0].Address(), Key: up.Key, DaemonID: up.DaemonID, DaemonVer: up.DaemonVer}, "00")
	addr := l.Addr().(*net.TCPAddr)
	require.NoError(t, connfile.Publish(f.file, connfile.File{
		Endpoints: []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(addr.Port)}},
		Key:       key, DaemonID: id, PID: uint32(os.Getpid()), DaemonVer: up.DaemonVer,
	}))
	t.Cleanup(func() { require.NoError(t, f.server.Shutdown(context.Background())) })
	return f
}

func (f *front) module(id string) *routertest.Module {
	m := routertest.DialModule(f.t, f.file)
	m.Hello(id, routertest.Nonce(f.router.Launch(id)))
	return m
}

// leave closes a module's connection and returns once the router has let go of its
// name.
func (f *front) leave(m *routertest.Module) {
	f.t.Helper()
	m.Close()
	c, until := f.client(), time.Now().Add(routertest.Patience)
	for named := ""; named != "[]"; {
		require.True(f.t, time.Now().Before(until), "the router still has %s", m.ID)
		named = string(c.Ask(routertest.Doc{"op": wire.OpCatalogList, "module_id": m.ID}).OK().Member("modules"))
	}
}

func (f *front) client() *routertest.Client { return routertest.Dial(f.t, f.file) }

// head is a record that direct openers may use.
func head(ref string) routertest.Doc {
	return routertest.Doc{"ref": ref, "scope_epoch": 1, "kind": "head",
		"carriers": []any{routertest.Doc{"principal": routertest.Direct()}}}
}

func scope(ref string) routertest.OpenOption {
	return routertest.Scope(routertest.Selector("owner", ref, 1))
}

// until waits until some session is as it should be, looking from its own loop.
func (f *front) until(as func(*Session) bool) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.server.mu.Lock()
		var pairs []*pair
		for _, p := range f.server.conns {
			pairs = append(pairs, p)
		}
		f.server.mu.Unlock()
		found := false
		for _, p := range pairs {
			seen := make(chan bool, 1)
			if p.loop.Load().post(func() { seen <- as(p.session) }) {
				found = <-seen || found
			}
		}
		return found
	}, routertest.Patience, time.Millisecond)
}
