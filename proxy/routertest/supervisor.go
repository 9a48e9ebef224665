package routertest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scopeward/proxy/wire"

	"golang.org/x/sys/unix"
)

const opSetEnabled = "supervisor.set_enabled"

func (r *Router) sortedRoster() []string { return slices.Sorted(maps.Keys(r.roster)) }

type supervisorEntry struct {
	ModuleID          string         `json:"module_id"`
	State             string         `json:"state"`
	Enabled           bool           `json:"enabled"`
	Live              bool           `json:"live"`
	Protocol          string         `json:"protocol"`
	Health            string         `json:"health"`
	LastProbeMS       *int64         `json:"last_probe_ms"`
	LastExitCode      *int32         `json:"last_exit_code,omitzero"`
	LastExitSignal    *int32         `json:"last_exit_signal,omitzero"`
	LastExitMS        *int64         `json:"last_exit_ms,omitzero"`
	LastExitKind      string         `json:"last_exit_kind,omitzero"`
	RestartCount      int            `json:"restart_count"`
	MaxRestarts       int            `json:"max_restarts"`
	LifetimeRestarts  int            `json:"lifetime_restarts"`
	SpawnGeneration   uint64         `json:"spawn_generation"`
	RestartWindowSecs int64          `json:"restart_window_secs"`
	DrainTimeoutMS    int64          `json:"drain_timeout_ms"`
	BackoffMS         int64          `json:"restart_backoff_ms"`
	MaxBackoffMS      int64          `json:"restart_max_backoff_ms"`
	Resources         map[string]any `json:"resources"`
}

type supervisorListBody struct {
	Op         string            `json:"op"`
	Generation uint64            `json:"generation"`
	Modules    []supervisorEntry `json:"modules"`
}

// supervisorList names every configured module, disabled ones too, and never one
// that only registered.
func (r *Router) supervisorList() supervisorListBody {
	b := supervisorListBody{Op: wire.OpSupervisorList, Generation: r.generation, Modules: []supervisorEntry{}}
	for _, id := range r.sortedRoster() {
		m := r.roster[id]
		m.budgetLeft()
		e := supervisorEntry{
			ModuleID: id, State: m.state, Enabled: m.enabled, Live: m.launch != nil,
			Protocol: "subc", Health: "unknown",
			RestartCount: len(m.crashes), MaxRestarts: maxRestarts, LifetimeRestarts: m.restarts,
			SpawnGeneration: m.generation, RestartWindowSecs: int64(restartWindow / time.Second),
			DrainTimeoutMS: r.drainTimeout(m).Milliseconds(),
			BackoffMS:      restartBackoff.Milliseconds(), MaxBackoffMS: maxBackoff.Milliseconds(),
			Resources: map[string]any{"status": "unavailable", "reason": "not_running"},
		}
		if m.last != nil {
			e.LastExitCode, e.LastExitSignal, e.LastExitMS = m.last.code, m.last.signal, &m.last.atMS
			e.LastExitKind = m.last.kind()
		}
		b.Modules = append(b.Modules, e)
	}
	return b
}

func (e *exit) kind() string {
	switch {
	case e.asked:
		return "deliberate_severance"
	case e.code != nil && *e.code == 0:
		return "clean"
	}
	return "crash"
}

func (r *Router) drainTimeout(m *supervised) time.Duration {
	if m.cfg.DrainTimeout != nil {
		return *m.cfg.DrainTimeout
	}
	return r.cfg.DrainTimeout
}

type routeConsumer struct {
	Kind         string `json:"kind"`
	ModuleID     string `json:"module_id,omitzero"`
	ConnectionID uint64 `json:"connection_id,omitzero"`
}

type routeEntry struct {
	Consumer    routeConsumer `json:"consumer"`
	AgeMS       int64         `json:"age_ms"`
	Draining    bool          `json:"draining"`
	DrainReason string        `json:"drain_reason,omitzero"`
}

type routesOfModule struct {
	ModuleID string       `json:"module_id"`
	Routes   []routeEntry `json:"routes"`
}

func (r *Router) supervisorRoutes(f wire.Frame) ([][]byte, error) {
	s, err := readShape(f.Body, "op", "module_id")
	if err != nil {
		return nil, err
	}
	only, err := s.optionalText("module_id")
	if err != nil {
		return nil, err
	}
	modules := []routesOfModule{}
	for _, id := range slices.Sorted(maps.Keys(r.endpoints)) {
		if s.absent("module_id") || id == only {
			modules = append(modules, routesOfModule{id, r.endpoints[id].census()})
		}
	}
	return answer(f, struct {
		Op      string           `json:"op"`
		Modules []routesOfModule `json:"modules"`
	}{wire.OpSupervisorRoutes, modules}), nil
}

func (ep *endpoint) census() []routeEntry {
	entries := []routeEntry{}
	for _, rt := range sorted(ep.routes) {
		e := routeEntry{
			Consumer: routeConsumer{Kind: rt.principal.Kind, ModuleID: rt.principal.ModuleID},
			AgeMS:    time.Since(rt.bound).Milliseconds(), Draining: ep.draining != "", DrainReason: ep.draining,
		}
		if rt.principal.Kind == "direct" {
			e.Consumer.ConnectionID = rt.client.id
		}
		entries = append(entries, e)
	}
	return entries
}

type rootEntry struct {
	ProjectRoot string `json:"project_root"`
	Bound       int    `json:"bound"`
	Pending     int    `json:"pending"`
}

type liveRootsBody struct {
	Op      string      `json:"op"`
	Roots   []rootEntry `json:"roots"`
	Unknown int         `json:"unknown_root_bindings"`
	Total   int         `json:"total_bindings"`
}

func (r *Router) liveRoots(id string) liveRootsBody {
	b := liveRootsBody{Op: wire.OpSupervisorLiveRoot, Roots: []rootEntry{}}
	ep := r.endpoints[id]
	if ep == nil {
		return b
	}
	roots := map[string]*rootEntry{}
	at := func(root string) *rootEntry {
		if roots[root] == nil {
			roots[root] = &rootEntry{ProjectRoot: root}
		}
		b.Total++
		return roots[root]
	}
	for _, rt := range ep.routes {
		at(rt.root).Bound++
	}
	for _, p := range ep.pending {
		at(p.root).Pending++
	}
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		b.Roots = append(b.Roots, *roots[root])
	}
	return b
}

type ackBody struct {
	Op       string `json:"op"`
	ModuleID string `json:"module_id"`
	Applied  bool   `json:"applied"`
}

// asked reads the module that a supervisor op names, or says how the op is
// refused.
func (r *Router) asked(f wire.Frame, names ...string) (*supervised, shape, *wire.ErrorBody, error) {
	s, err := readShape(f.Body, append([]string{"op", "module_id"}, names...)...)
	if err != nil {
		return nil, nil, nil, err
	}
	id, err := s.text("module_id")
	if err != nil {
		return nil, nil, nil, err
	}
	m := r.roster[id]
	if m == nil {
		return nil, s, refusal("unknown_module", "module_id %q is not supervised", id), nil
	}
	return m, s, nil, nil
}

// milliseconds reads an optional period, d when it is absent.
func (s shape) milliseconds(name string, d time.Duration) (time.Duration, error) {
	if s.absent(name) {
		return d, nil
	}
	var ms uint32
	err := s.into(name, &ms)
	return time.Duration(ms) * time.Millisecond, err
}

// supervisorRestart is answered when the restart has begun.
func (r *Router) supervisorRestart(f wire.Frame) ([][]byte, error) {
	m, s, body, err := r.asked(f, "drain_timeout_ms")
	if err != nil {
		return nil, err
	}
	if body == nil {
		d, err := s.milliseconds("drain_timeout_ms", r.drainTimeout(m))
		if err != nil {
			return nil, err
		}
		body = r.restart(m, d)
	}
	if body != nil {
		return refuseBody(f, *body), nil
	}
	return answer(f, ackBody{"supervisor.ack", m.cfg.ID, true}), nil
}

// Restart restarts the module id as supervisor.restart does. AwaitLaunch gives
// the launch that follows.
func (r *Router) Restart(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.roster[id]
	if m == nil {
		return fmt.Errorf("module %q is not supervised", id)
	}
	if body := r.restart(m, r.drainTimeout(m)); body != nil {
		return fmt.Errorf("restart %q: %s", id, body.Code)
	}
	return nil
}

func (r *Router) restart(m *supervised, d time.Duration) *wire.ErrorBody {
	switch {
	case !m.enabled:
		return refusal("module_disabled", "module_id %q is disabled", m.cfg.ID)
	case m.swap != nil:
		return refusal("swap_in_progress", "module_id %q is being swapped", m.cfg.ID)
	}
	r.takeDown(m, "restart", d, func() {
		m.state = stateRestarting
		m.crashes = nil
		r.whenReleased(m, func() { r.startAfter(m, restartBackoff) })
	})
	return nil
}

// takeDown drains m's endpoint and ends its process, then calls then.
func (r *Router) takeDown(m *supervised, reason string, d time.Duration, then func()) {
	m.state = stateDraining
	if ep := r.endpoints[m.cfg.ID]; ep != nil && ep.draining == "" {
		r.drain(ep, reason, d, func() { r.stop(m, true, d, then) })
		return
	}
	r.stop(m, false, d, then)
}

// stop ends m's process: by asking, unless it was told over its connection, and
// by force after d.
func (r *Router) stop(m *supervised, told bool, d time.Duration, then func()) {
	l := m.launch
	if l == nil {
		then()
		return
	}
	m.onExit = then
	end := func(e exit) {
		if m.launch == l {
			r.ended(m, e)
		}
	}
	if !told {
		r.signal(*l, unix.SIGTERM, end)
	}
	if m.launch == l {
		r.later(d, func() {
			if m.launch == l {
				r.signal(*l, unix.SIGKILL, end)
			}
		})
	}
}

func (r *Router) supervisorSetEnabled(f wire.Frame) ([][]byte, error) {
	m, s, body, err := r.asked(f, "enabled")
	if err != nil {
		return nil, err
	}
	if body != nil {
		return refuseBody(f, *body), nil
	}
	var enabled bool
	if err := s.into("enabled", &enabled); err != nil {
		return nil, err
	}
	applied := enabled != m.enabled
	m.enabled = enabled
	switch {
	case !enabled && applied:
		r.takeDown(m, "disable", r.drainTimeout(m), func() { m.state = stateDisabled })
	case enabled && m.launch == nil && m.state != stateRestarting:
		applied = true
		if err := r.start(m, 0); err != nil {
			return refuse(f, wire.CodeTargetUnavailable, err.Error()), nil
		}
	}
	return answer(f, ackBody{"supervisor.ack", m.cfg.ID, applied}), nil
}
