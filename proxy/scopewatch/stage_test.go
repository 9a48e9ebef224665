package scopewatch_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/scopewatch"
	"scopeward/proxy/wire"
)

// stage is a sidecar's server in front of a stub router, and a provider of its
// own behind it.
type stage struct {
	tb     routertest.TB
	router *routertest.Router
	server *proxy.Server
	file   string
	starts int

	mu         sync.Mutex
	configured map[string]bool

	goodbyes chan wire.Header // what the provider was told on routes
}

// modules that the router knows. Only those that a test configures are in the
// roster.
const (
	core     = "core"
	stranger = "stranger"
	tool     = "tool"
)

func newStage(tb routertest.TB) *stage {
	tb.Helper()
	router, err := routertest.NewRouter(routertest.Config{Modules: []routertest.ModuleConfig{{ID: core}, {ID: tool}}})
	must(tb, err)
	tb.Cleanup(router.Close)
	dir, err := os.MkdirTemp("", "scopewatch")
	must(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	key, id := make([]byte, 32), make([]byte, 16)
	rand.Read(key)
	rand.Read(id)
	s := &stage{tb: tb, router: router, file: filepath.Join(dir, "c.json"),
		configured: map[string]bool{core: true, tool: true}, goodbyes: make(chan wire.Header, 16)}
	s.server, err = proxy.NewServer(proxy.Params{Log: zap.NewNop(), Peers: s, Launches: s, Recorder: s, Key: key, DaemonID: id, AuthorityOwners: []string{core}})
	must(tb, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	must(tb, s.server.Serve(l))
	tb.Cleanup(func() { must(tb, s.server.Shutdown(context.Background())) })
	s.attach()
	must(tb, connfile.Publish(s.file, connfile.File{
		Endpoints: []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(l.Addr().(*net.TCPAddr).Port)}},
		Key:       key, DaemonID: id, PID: uint32(os.Getpid()), DaemonVer: router.File().DaemonVer,
	}))
	return s
}

func must(tb routertest.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
}

func (s *stage) attach() {
	s.starts++
	up := s.router.File()
	s.server.Attach(proxy.Upstream{Addr: up.Endpoints[0].Address(), Key: up.Key, DaemonID: up.DaemonID, DaemonVer: up.DaemonVer}, fmt.Sprintf("%032x", s.starts))
}

// restart ends every connection and begins a new incarnation.
func (s *stage) restart() {
	s.server.Detach()
	s.attach()
}

// The stage knows the launches as a test has it: every nonce is good.

func (s *stage) Accepted(proxy.ConnID, proxy.Socket, bool) bool { return true }
func (s *stage) Closed(proxy.ConnID)                            {}
func (s *stage) Registered(proxy.ConnID, string, string)        {}
func (s *stage) Unregistered(proxy.ConnID)                      {}
func (s *stage) Severed(proxy.ConnID)                           {}
func (s *stage) Record(proxy.Decision)                          {}
func (s *stage) Ask(q proxy.Question, reply func(proxy.Answer)) {
	s.mu.Lock()
	known := s.configured[q.ModuleID]
	s.mu.Unlock()
	reply(proxy.Answer{Configured: known, Current: true, Launch: 1})
}

// module registers a module. One of the same id may be on its way out.
func (s *stage) module(id string) *routertest.Module {
	m := routertest.DialModule(s.tb, s.file)
	until(s.tb, func() bool {
		ack := m.StartHello(id, routertest.Nonce(s.router.Launch(id))).Wait()
		if ack.Code() != "duplicate_module_id" {
			ack.OK()
		}
		return ack.Code() == ""
	})
	return m
}

// provider runs a provider until the test ends, and returns what it knows.
func (s *stage) provider(p scopewatch.Params) *scopewatch.Watcher {
	w := scopewatch.New(p)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- scopewatch.Run(ctx, scopewatch.RunParams{
			Path: s.file, Hello: s.hello(tool), Watcher: w, Serve: s.serve, Retry: time.Millisecond,
		})
	}()
	s.tb.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			s.tb.Fatalf("the provider ended: %v", err)
		}
	})
	return w
}

func (s *stage) hello(id string) routertest.Doc {
	return routertest.Doc{"protocol_ver": wire.Version, "launch_nonce": s.router.Launch(id).Nonce, "manifest": routertest.Doc{
		"module_id": id, "module_version": "1.0.0", "protocol_ver": wire.Version, "provides": []any{routertest.ToolProvider()},
	}}
}

// serve accepts every bind and notes Goodbyes.
func (s *stage) serve(c scopewatch.Conn, f wire.Frame) {
	switch {
	case f.Type == wire.Request && f.Channel == wire.ControlChannel:
		c.Send(wire.Header{Type: wire.Response, Corr: f.Corr}, wire.MustMarshal(routertest.Doc{"op": wire.OpRouteBind}))
	case f.Type == wire.Goodbye:
		s.goodbyes <- f.Header
	}
}

// head is a record that direct openers may use.
func head(ref string, epoch uint64) routertest.Doc {
	return routertest.Doc{"ref": ref, "scope_epoch": epoch, "kind": "head",
		"carriers": []any{routertest.Doc{"principal": routertest.Direct()}}}
}

// until asks again until it is so.
func until(tb routertest.TB, so func() bool) {
	tb.Helper()
	late := time.After(routertest.Patience)
	for !so() {
		select {
		case <-late:
			tb.Fatalf("it did not come to be in %s", routertest.Patience)
			return
		case <-time.After(time.Millisecond):
		}
	}
}
