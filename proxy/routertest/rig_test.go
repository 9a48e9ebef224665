package routertest

import (
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a router and who speaks to it: a stub in memory, or a real process.
type rig struct {
	t       *testing.T
	*Router       // nil for a real one
	real    *real // nil for a stub
}

func newTestRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	cfg.InMemory = true
	r, err := NewRouter(cfg)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return &rig{t: t, Router: r}
}

// onBoth runs a story on the stub, and on the real router when it is asked for:
// what the stub claims of it is then seen.
func onBoth(t *testing.T, cfg Config, story func(t *testing.T, r *rig)) {
	t.Run("stub", func(t *testing.T) { story(t, newTestRig(t, cfg)) })
	t.Run("real", func(t *testing.T) { story(t, newRealRig(t, cfg)) })
}

func (r *rig) client() *Client {
	r.t.Helper()
	if r.real != nil {
		return Dial(r.t, r.real.path)
	}
	return DialPipe(r.t, r.Router)
}

func (r *rig) dialModule() *Module {
	r.t.Helper()
	if r.real != nil {
		return DialModule(r.t, r.real.path)
	}
	return DialModulePipe(r.t, r.Router)
}

// module registers id.
func (r *rig) module(id string, opts ...HelloOption) *Module {
	r.t.Helper()
	m := r.dialModule()
	m.Hello(id, opts...)
	return m
}

// launch launches id. A real router has launched it by itself if it is in the
// config.
func (r *rig) launch(id string) Launch {
	r.t.Helper()
	if r.real != nil {
		return r.real.launch(id)
	}
	return r.Launch(id)
}

// launched launches and registers id.
func (r *rig) launched(id string, opts ...HelloOption) (*Module, Launch) {
	r.t.Helper()
	l := r.launch(id)
	return r.module(id, append(opts, Nonce(l))...), l
}

// elapse lets d pass on the bubble's clock.
func elapse(d time.Duration) { <-time.After(d) }

func requireBody(t *testing.T, want string, f wire.Frame) {
	t.Helper()
	require.JSONEq(t, want, string(f.Body))
}
