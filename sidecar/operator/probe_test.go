package operator

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/routertest"
	"scopeward/sidecar/operator/api"
)

func newTestProber(addr, file string, world *proxy.World, state State) *Prober {
	if state.Attribution.Source == "" {
		state.Attribution = api.Attribution{Mode: "off", Source: sourceNone}
	}
	return NewProber(ProberParams{
		Addr: addr, File: file,
		World: func() *proxy.World { return world }, State: func() State { return state },
	})
}

func attached() State {
	return State{Router: api.Router{Attached: true}, Published: true}
}

func states(h api.Health) map[string]string {
	m := map[string]string{}
	for _, s := range h.Steps {
		m[s.Name] = s.State
	}
	return m
}

// An absent router is a state, never a missed ping.
func TestProbeWithoutARouter(t *testing.T) {
	l := mustListen(t)
	h := newTestProber(l.Addr().String(), "", nil, State{Router: api.Router{Why: "it is gone"}}).Probe(t.Context())
	require.True(t, h.Live)
	require.False(t, h.Ready)
	require.Equal(t, map[string]string{"accept": "ok", "handshake": "absent", "describe": "absent", "table": "absent", "attribute": "absent"}, states(h))
}

// A sidecar that does not accept is not live, with a router or without.
func TestProbeOfAnAcceptLoopThatIsStuck(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	h := newTestProber(l.Addr().String(), "", nil, State{}).probe(ctx)
	require.False(t, h.Live)
	require.Equal(t, "failed", states(h)["accept"])
}

// The stub router stands in for a sidecar that works: it refuses the first
// request by itself and answers the second.
func TestProbeThroughARouter(t *testing.T) {
	r, err := routertest.NewRouter(routertest.Config{})
	require.NoError(t, err)
	defer r.Close()
	p := newTestProber("", r.Path(), newTestWorld(t), attached())
	h := p.Probe(t.Context())
	require.True(t, h.Ready, "%+v", h)
	require.True(t, h.Live)
	require.Equal(t, map[string]string{"accept": "ok", "handshake": "ok", "table": "ok", "describe": "ok", "attribute": "absent"}, states(h))
	require.Equal(t, h, p.Probe(t.Context()), "one probe serves for a second")
}

// A published file with another key is a handshake that fails, and no file is a
// sidecar that nobody finds.
func TestProbeOfAWrongFile(t *testing.T) {
	r, err := routertest.NewRouter(routertest.Config{})
	require.NoError(t, err)
	defer r.Close()
	f := r.File()
	f.Key = append(connfile.Secret{}, f.Key...)
	f.Key[0]++
	path := filepath.Join(t.TempDir(), "front.json")
	require.NoError(t, connfile.Publish(path, f))
	h := newTestProber("", path, newTestWorld(t), attached()).Probe(t.Context())
	require.False(t, h.Live)
	require.Equal(t, "failed", states(h)["handshake"])
	h = newTestProber("", path+".none", newTestWorld(t), attached()).Probe(t.Context())
	require.False(t, h.Live)
	require.Equal(t, "failed", states(h)["accept"])
}

// A router that does not take the connection is its own fault: ready no more, but
// live.
func TestProbeOfARouterThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := connfile.File{
		Endpoints: []connfile.Endpoint{{Host: "127.0.0.1", Port: uint16(l.Addr().(*net.TCPAddr).Port)}},
		Key:       make(connfile.Secret, handshake.MinKey), DaemonID: make([]byte, handshake.DaemonIDLen), PID: 1,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			handshake.Server(c, handshake.Params{Key: f.Key, DaemonID: f.DaemonID})
			c.Close() // as the sidecar does when the router does not take the session
		}
	}()
	defer func() {
		l.Close()
		<-done
	}()
	path := filepath.Join(t.TempDir(), "front.json")
	require.NoError(t, connfile.Publish(path, f))
	h := newTestProber("", path, newTestWorld(t), attached()).Probe(t.Context())
	require.True(t, h.Live)
	require.False(t, h.Ready)
	require.Equal(t, "failed", states(h)["describe"])
	own, router := exchangeWith(t, time.Minute, func(c net.Conn) { c.Close() })
	require.ErrorIs(t, own, errRouterWent)
	require.ErrorIs(t, router, errRouterWent)
}

// A loop that is stuck answers nothing in time: that is ours.
func TestProbeOfALoopThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, router := exchangeWith(t, time.Minute, func(c net.Conn) {})
		require.ErrorIs(t, own, errNoAnswer)
		require.ErrorIs(t, router, errNoAnswer)
	})
}

// exchangeWith runs a probe's exchange against a peer that takes the requests
// and then does something, for limit at most.
func exchangeWith(t *testing.T, limit time.Duration, then func(net.Conn)) (own, router error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		far.Read(make([]byte, 4096))
		then(far)
	}()
	require.NoError(t, near.SetDeadline(time.Now().Add(limit)))
	own, router = exchange(near)
	<-done
	return own, router
}

// Enforcing without seeing who calls is no readiness: everybody would be refused.
func TestProbeLooksAtAttribution(t *testing.T) {
	r, err := routertest.NewRouter(routertest.Config{})
	require.NoError(t, err)
	defer r.Close()
	for mode, ready := range map[string]bool{"enforce": false, "observe": true} {
		state := attached()
		state.Attribution = api.Attribution{Mode: mode, Source: "ebpf", Fault: "detached"}
		h := newTestProber("", r.Path(), newTestWorld(t), state).Probe(t.Context())
		require.Equal(t, ready, h.Ready, mode)
		require.True(t, h.Live)
		require.Equal(t, "failed", states(h)["attribute"])
	}
}
