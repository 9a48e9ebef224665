package sidecar

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/admission"
	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/sidecar/config"
)

func TestOurFileHoldsWhatTheDesignListsAndNoMore(t *testing.T) {
	r := newRig(t)
	router, _ := r.startBoth()
	f := r.published()
	require.False(t, f.SameDaemon(router.File()))
	require.NotEqual(t, router.File().Key, f.Key)
	require.Equal(t, router.File().DaemonVer, f.DaemonVer)
	require.EqualValues(t, os.Getpid(), f.PID)

	info, err := os.Stat(r.front)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	data, err := os.ReadFile(r.front)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(data, &members))
	var names []string
	for name := range members {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{"schema", "wire_version", "endpoints", "key", "daemon_id", "pid", "daemon_ver"}, names)
}

func TestS11_ALaunchThatIsNotTheSupervisorsTakesNoAuthority(t *testing.T) {
	r := newRig(t)
	router, _ := r.startBoth("owner")
	launch := router.Launch("owner")
	body := routertest.Doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []any{}}

	wrong := launch
	wrong.Nonce = "1" + launch.Nonce[1:]
	if wrong.Nonce == launch.Nonce {
		wrong.Nonce = "2" + launch.Nonce[1:]
	}
	thief := routertest.DialModule(t, r.front)
	thief.Hello("owner", routertest.Nonce(wrong))
	thief.Ask(body).Refused("scope_sync_not_authority")
	thief.Close()

	eventually(t, "the id to be free", func() bool {
		owner := routertest.DialModule(t, r.front)
		if owner.StartHello("owner", routertest.Nonce(launch)).Wait().Code() != "" {
			owner.Close()
			return false
		}
		owner.Ask(body).OK()
		return true
	})
}

func TestARouterThatIsNotThereIsWaitedForAndTheLogSaysSoOnce(t *testing.T) {
	const waiting = "waiting for the router"
	t.Run("no file", func(t *testing.T) {
		r := newRig(t)
		s := r.start()
		eventually(t, "the first line", func() bool { return r.said(waiting) > 0 })
		quiet(t, s, 3*lookEvery)
		require.Equal(t, 1, r.said(waiting))
		require.False(t, s.Router().Attached)
		r.startRouter()
		r.attached(s)
		require.Equal(t, 1, r.said(waiting))
	})
	t.Run("a stale file", func(t *testing.T) {
		r := newRig(t)
		gone := r.startRouter()
		f := gone.File()
		gone.Close()
		require.NoError(t, connfile.Publish(r.router, f))
		s := r.start()
		eventually(t, "the first line", func() bool { return r.said(waiting) > 0 })
		quiet(t, s, 3*lookEvery)
		require.Equal(t, 1, r.said(waiting))
		require.Contains(t, s.Router().Why, "stale")
		r.startRouter()
		r.published()
	})
}

// quiet sees to it that the sidecar goes on for a while.
func quiet(t *testing.T, s *Sidecar, d time.Duration) {
	t.Helper()
	select {
	case err := <-s.Failed():
		t.Fatal(err)
	case <-time.After(d):
	}
}

func TestWhenTheRouterGoesOurFileGoesFirstAndANewWorldComesWithIt(t *testing.T) {
	r := newRig(t)
	router, s := r.startBoth("owner")
	first := s.Router().Incarnation
	require.Regexp(t, "^[0-9a-f]{32}$", first)
	client := routertest.Dial(t, r.front)
	owner := routertest.DialModule(t, r.front)
	owner.Hello("owner", routertest.Nonce(router.Launch("owner")))
	owner.Sync(1)
	require.Equal(t, "true", string(owner.Describe("owner", "s").Member("owner_synced")))

	router.Close()
	client.Ended()
	owner.Ended()
	r.withdrawn()

	r.startRouter("owner")
	r.reattached(s, first)
	reader := routertest.DialModule(t, r.front)
	reader.Hello("reader")
	require.Equal(t, "false", string(reader.Describe("owner", "s").Member("owner_synced")))
	quiet(t, s, 0)
}

// relay stands between the sidecar and the router so that one connection can be
// cut without either end's doing.
type relay struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	x := &relay{Listener: l, to: to}
	x.wg.Go(x.serve)
	t.Cleanup(func() {
		x.Close()
		x.cut(0)
		x.wg.Wait()
	})
	return x
}

func (x *relay) serve() {
	for {
		down, err := x.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", x.to)
		if err != nil {
			down.Close()
			continue
		}
		x.mu.Lock()
		x.conns = append(x.conns, down)
		x.mu.Unlock()
		x.wg.Go(func() { io.Copy(up, down); up.Close(); down.Close() })
		x.wg.Go(func() { io.Copy(down, up); up.Close(); down.Close() })
	}
}

// cut closes the first n connections, all of them when n is 0.
func (x *relay) cut(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, c := range x.conns {
		if n == 0 || i < n {
			c.Close()
		}
	}
}

// startRelayed is a router whose file leads through a relay.
func (r *rig) startRelayed(modules ...string) (*routertest.Router, *relay) {
	r.cfg.Router.ConnectionFile = r.router + ".relayed"
	router := r.startRouter(modules...)
	x := newRelay(r.t, router.File().Endpoints[0].Address())
	r.leadThrough(router, x)
	return router, x
}

func (r *rig) leadThrough(router *routertest.Router, x *relay) {
	f := router.File()
	f.Endpoints = []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(x.Addr().(*net.TCPAddr).Port)}}
	require.NoError(r.t, connfile.Publish(r.cfg.Router.ConnectionFile, f))
}

// A router that we can't reach any more is gone for us, whatever it thinks.
func TestALinkThatIsLostForGoodEndsEverySessionByOurActAndItsModulesAreHealed(t *testing.T) {
	r := newRig(t)
	router, x := r.startRelayed("owner")
	s := r.start()
	first := r.attached(s).Incarnation
	launch := router.Launch("owner")
	owner := routertest.DialModule(t, r.front)
	owner.Hello("owner", routertest.Nonce(launch))
	r.remembered(`{"version":1,"modules":["owner"]}`)

	x.Close()
	x.cut(1) // our link alone: the sessions' own connections would live on
	owner.Ended()
	r.withdrawn()
	router.Exit(launch, 0)

	r.leadThrough(router, newRelay(t, router.File().Endpoints[0].Address()))
	r.relaunched(router, launch, 1)
	r.reattached(s, first)
}

func TestALinkThatBreaksBeforeTheRouterDoesCostsNoSession(t *testing.T) {
	r := newRig(t)
	router, x := r.startRelayed("owner")
	s := r.start()
	incarnation := r.attached(s).Incarnation
	owner := routertest.DialModule(t, r.front)
	launch := router.Launch("owner")
	owner.Hello("owner", routertest.Nonce(launch))
	owner.Sync(1)

	x.cut(1)
	eventually(t, "the link's return", func() bool {
		return r.said("the link to the router broke and was taken up again") == 1
	})
	owner.Sync(2)
	require.Equal(t, incarnation, s.Router().Incarnation)

	router.Exit(launch, 0) // the feed has been taken up too
	owner.Ended()
}

func TestWhatTheRouterSaysOfScopesDecidesWhoServesThem(t *testing.T) {
	r := newRig(t)
	r.cfg.Scopes = config.ScopesPass
	_, s := r.startBoth()
	require.True(t, s.Router().Pass)
	require.Equal(t, 1, r.said("the router does not serve all of scopes/v1, and scopes is pass: nobody does"))
	m := routertest.DialModule(t, r.front)
	m.Hello("m")
	m.Ask(routertest.Doc{"op": wire.OpScopeSync, "generation": 1, "scopes": []any{}}).Refused("unsupported_control_frame")
}

func TestStopDrainsWithdrawsAndLeavesNothing(t *testing.T) {
	r := newRig(t)
	router, s := r.startBoth("owner", "tool")
	owner := routertest.DialModule(t, r.front)
	owner.Hello("owner", routertest.Nonce(router.Launch("owner")))
	owner.Sync(1, routertest.Doc{
		"ref": "s", "scope_epoch": 1, "kind": "head", "child_owners": []any{},
		"carriers":   []any{routertest.Doc{"principal": routertest.Direct()}},
		"attributes": routertest.Doc{"delegates": false},
	})
	tool := routertest.DialModule(t, r.front)
	tool.Hello("tool", routertest.Nonce(router.Launch("tool")), routertest.Declares(string(admission.CallModes)))
	tool.Serve()
	client := routertest.Dial(t, r.front)
	route := client.Open("tool", routertest.Scope(routertest.Selector("owner", "s", 1)))
	require.Equal(t, "hi", route.Call("hi"))

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.stop(s)
	}()
	push := client.NextPush(wire.OpRouteClosed)
	_, err := os.Stat(r.front)
	require.ErrorIs(t, err, os.ErrNotExist, "nobody is led here any more")
	<-stopped
	require.Equal(t, "restart", push.Text("reason"))
	require.Equal(t, "false", string(push.Member("terminal")))
	client.Ended()
	lock, err := connfile.TakeLock(r.front)
	require.NoError(t, err, "the path is free again")
	require.NoError(t, lock.Release())
}
