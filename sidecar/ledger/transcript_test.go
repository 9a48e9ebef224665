package ledger

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// front is a proxy server in front of a stub router, with a ledger as its journal.
type front struct {
	t      *testing.T
	router *routertest.Router
	file   connfile.File
}

// fakeFacts believes every nonce.
type fakeFacts struct{}

func (fakeFacts) Accepted(proxy.ConnID, proxy.Socket, bool) bool { return true }
func (fakeFacts) Closed(proxy.ConnID)                            {}
func (fakeFacts) Registered(proxy.ConnID, string, string)        {}
func (fakeFacts) Severed(proxy.ConnID)                           {}
func (fakeFacts) Unregistered(proxy.ConnID)                      {}
func (fakeFacts) Record(proxy.Decision)                          {}
func (fakeFacts) Ask(_ proxy.Question, r func(proxy.Answer)) {
	r(proxy.Answer{Configured: true, Current: true, Launch: 1})
}

func newFront(t *testing.T, l *Ledger) *front {
	router, err := routertest.NewRouter(routertest.Config{Modules: []routertest.ModuleConfig{{ID: "core"}, {ID: "tool"}}})
	require.NoError(t, err)
	t.Cleanup(router.Close)
	key, id := make([]byte, 32), make([]byte, 16)
	s, err := proxy.NewServer(proxy.Params{
		Log: zap.NewNop(), Peers: fakeFacts{}, Launches: fakeFacts{}, Recorder: fakeFacts{},
		Key: key, DaemonID: id, AuthorityOwners: []string{"core"}, Journal: l, Tombstones: l.Remembered(),
	})
	require.NoError(t, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.Serve(lis))
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	up := router.File()
	s.Attach(proxy.Upstream{Addr: up.Endpoints[0].Address(), Key: up.Key, DaemonID: up.DaemonID, DaemonVer: up.DaemonVer}, strings.Repeat("0", 32))
	return &front{t: t, router: router, file: connfile.File{
		Endpoints: []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(lis.Addr().(*net.TCPAddr).Port)}},
		Key:       key, DaemonID: id, PID: uint32(os.Getpid()), DaemonVer: up.DaemonVer,
	}}
}

// peer is a connection that keeps every frame it was sent.
type peer struct {
	t    *testing.T
	nc   net.Conn
	corr uint64
	seen []string
}

func (f *front) dial() *peer {
	nc, err := connfile.Dial(f.t.Context(), f.file, handshake.RoleClient)
	require.NoError(f.t, err)
	require.NoError(f.t, nc.SetDeadline(time.Now().Add(20*time.Second)))
	p := &peer{t: f.t, nc: nc}
	f.t.Cleanup(func() { nc.Close() })
	return p
}

func (p *peer) send(h wire.Header, body string) {
	p.t.Helper()
	_, err := p.nc.Write(wire.AppendFrame(nil, h, []byte(body)))
	require.NoError(p.t, err)
}

// next is the next frame, and adds it to the transcript.
func (p *peer) next(of wire.Type) wire.Frame {
	p.t.Helper()
	f, err := wire.ReadFrame(p.nc)
	require.NoError(p.t, err)
	body := f.Body
	if f.Type == wire.HelloAck {
		o, err := wire.ParseObject(body)
		require.NoError(p.t, err)
		o.Delete("machine_id") // the stub router's, new each time
		body = o.Append(nil)
	}
	p.seen = append(p.seen, fmt.Sprintf("%v %s", f.Header, body))
	require.Equal(p.t, of, f.Type, "%s", f.Body)
	return f
}

// ask sends a control request and wants its answer next.
func (p *peer) ask(body string) string {
	p.t.Helper()
	p.corr++
	p.send(wire.Header{Type: wire.Request, Corr: p.corr}, body)
	return string(p.next(wire.Response).Body)
}

func (f *front) module(id string) *peer {
	p := f.dial()
	p.corr++
	p.send(wire.Header{Type: wire.Hello, Corr: p.corr}, fmt.Sprintf(`{"protocol_ver":2,"launch_nonce":%q,
		"manifest":{"module_id":%q,"module_version":"1","protocol_ver":2,"provides":[%s]}}`,
		f.router.Launch(id).Nonce, id, wire.MustMarshal(routertest.ToolProvider())))
	p.next(wire.HelloAck)
	return p
}

// story is a conversation across the sync at which an entry is read: syncs, a
// route opened before and one after, a change that drains, and a describe as the
// last question of each peer: nothing came unasked before it.
func (f *front) story() []string {
	const describe = `{"op":"scope.describe","owner":{"kind":"reserved","module_id":"core"},"ref":"a"}`
	direct := `{"principal":{"kind":"direct"}}`
	rec := func(carriers string) string {
		return fmt.Sprintf(`{"ref":"a","scope_epoch":1,"kind":"head","carriers":[%s]}`, carriers)
	}
	open := `{"op":"route.open","target":{"kind":"tool_provider","module_id":"tool"},"identity":{"project_root":"/","harness":"h","session":"s"},
		"scope":{"owner":{"kind":"reserved","module_id":"core"},"ref":"a","scope_epoch":1}}`
	core, tool, client := f.module("core"), f.module("tool"), f.dial()
	route := func() {
		client.corr++
		client.send(wire.Header{Type: wire.Request, Corr: client.corr}, open)
		bind := tool.next(wire.Request)
		tool.send(wire.Header{Type: wire.Response, Corr: bind.Corr}, `{"op":"route.bind"}`)
		client.next(wire.Response)
	}
	core.ask(syncBody(1, rec(carrierList([]string{"x", "y"})+","+direct)))
	route()
	core.ask(syncBody(2, rec(direct+","+carrierList([]string{"y", "x"}))))
	route()
	core.ask(describe)
	core.ask(syncBody(3, rec(carrierList([]string{"x"}))))
	client.next(wire.Push)
	for range 2 {
		client.next(wire.Goodbye)
		tool.next(wire.Goodbye)
	}
	core.ask(describe)
	tool.ask(describe)
	client.corr++
	client.send(wire.Header{Type: wire.Request, Corr: client.corr}, describe)
	client.next(wire.Error) // it is no module
	var all []string
	for _, p := range []*peer{core, tool, client} {
		all = append(all, p.seen...)
	}
	return all
}

// A re-key writes no frame to any peer: what each is sent is the same, to the
// byte, over a ledger that is current, one that is re-keyed, and an empty one.
func TestARekeyWritesNoFrame(t *testing.T) {
	direct := `{"principal":{"kind":"direct"}}`
	tell := func(t *testing.T, carriers string) ([]string, Stats) {
		path := newRigPath(t)
		if carriers != "" {
			var f foreignLog
			raw := fmt.Sprintf(`{"carriers":[%s],"kind":"head","ref":"a","scope_epoch":1}`, carriers)
			f.line(scope("core", "a", 1), Created, 0, raw, digestOf(raw))
			_, err := Import(path, strings.NewReader(f.String()), began)
			require.NoError(t, err)
		}
		r := openRig(t, path, true)
		said := newFront(t, r.Ledger).story()
		r.flush()
		return said, r.Stats()
	}
	current, none := tell(t, carrierList([]string{"x", "y"})+","+direct)
	rekeyed, once := tell(t, direct+","+carrierList([]string{"y", "x"}))
	empty, _ := tell(t, "")
	require.Zero(t, none.Rekeyed)
	require.Equal(t, uint64(1), once.Rekeyed)
	require.Equal(t, none.Appended+1, once.Appended)
	require.Greater(t, len(current), 15)
	require.Equal(t, current, rekeyed)
	require.Equal(t, current, empty)
}
