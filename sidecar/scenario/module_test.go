package scenario

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// module is a registered module: an owner, a provider, or both.
type module struct {
	*routertest.Module
	s      *stage
	launch routertest.Launch
}

// module registers the live launch of id. It accepts every bind and echoes every
// call.
func (s *stage) module(id string, opts ...routertest.HelloOption) *module {
	s.t.Helper()
	m := s.holding(id, opts...)
	m.Serve()
	return m
}

// holding registers a module whose binds wait until they are answered by hand.
func (s *stage) holding(id string, opts ...routertest.HelloOption) *module {
	s.t.Helper()
	return s.launched(s.router.Launch(id), opts...)
}

// launched registers a launch that is there already.
func (s *stage) launched(l routertest.Launch, opts ...routertest.HelloOption) *module {
	s.t.Helper()
	m := &module{routertest.DialModule(s.t, s.front), s, l}
	m.Hello(l.ModuleID, append([]routertest.HelloOption{routertest.Nonce(l)}, opts...)...)
	s.modules[l.ModuleID] = m
	return m
}

// crash kills the module's connection and process, in the kernel's order, and
// returns the launch with which the router replaces it. A router gives up a name
// that outlives its process for a second.
func (m *module) crash() routertest.Launch {
	m.s.t.Helper()
	m.leave()
	m.s.router.Crash(m.launch, 9)
	ctx, cancel := context.WithTimeout(m.s.t.Context(), routertest.Patience)
	defer cancel()
	next, err := m.s.router.AwaitLaunch(ctx, m.launch.ModuleID, m.launch)
	require.NoError(m.s.t, err)
	return next
}

// leave closes the module's connection and returns once the router has let go of
// its name.
func (m *module) leave() {
	m.s.t.Helper()
	m.Close()
	c, until := m.s.client(), time.Now().Add(routertest.Patience)
	for named := ""; named != "[]"; {
		require.True(m.s.t, time.Now().Before(until), "the router still has %s", m.ID)
		named = string(c.Ask(routertest.Doc{"op": wire.OpCatalogList, "module_id": m.ID}).OK().Member("modules"))
	}
}

// sync sends the full set.
func (m *module) sync(generation uint64, records ...doc) said {
	m.s.t.Helper()
	scopes := make([]any, len(records))
	for i, r := range records {
		scopes[i] = r
	}
	return m.s.said(m.Sync(generation, scopes...))
}

// apply sends a delta of records and ends.
func (m *module) apply(generation uint64, changes ...any) said {
	m.s.t.Helper()
	var upsert, ends []any
	for _, c := range changes {
		if e, ok := c.(ending); ok {
			ends = append(ends, e)
		} else {
			upsert = append(upsert, c)
		}
	}
	return m.s.said(m.Apply(generation, upsert, ends))
}

// reads is scope.describe.
func (m *module) reads(owner, ref string) said {
	m.s.t.Helper()
	return m.s.said(m.Describe(owner, ref))
}

// dismissed waits until the router has dismissed the older launch of a swap: it
// says so on channel 0, behind the Goodbyes of its routes.
func (m *module) dismissed() {
	m.s.t.Helper()
	for {
		if f := m.Next(); f.Type == wire.Goodbye && f.Channel == wire.ControlChannel {
			return
		}
	}
}
