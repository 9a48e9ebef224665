package routertest

import (
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a stub router in memory, and who speaks to it.
type rig struct {
	t *testing.T
	*Router
}

func newTestRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	cfg.InMemory = true
	r, err := NewRouter(cfg)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return &rig{t, r}
}

func (r *rig) client() *Client { return DialPipe(r.t, r.Router) }

// module registers id, in the name of its live launch when it has one.
func (r *rig) module(id string, opts ...HelloOption) *Module {
	r.t.Helper()
	m := DialModulePipe(r.t, r.Router)
	m.Hello(id, opts...)
	return m
}

// launched launches and registers id.
func (r *rig) launched(id string, opts ...HelloOption) (*Module, Launch) {
	r.t.Helper()
	l := r.Launch(id)
	return r.module(id, append(opts, Nonce(l))...), l
}

// elapse lets d pass on the bubble's clock.
func elapse(d time.Duration) { <-time.After(d) }

func requireBody(t *testing.T, want string, f wire.Frame) {
	t.Helper()
	require.JSONEq(t, want, string(f.Body))
}
