package routertest

import (
	"reflect"

	"scopeward/proxy/wire"
)

const opRescan = "supervisor.rescan"

// rescanBody names what another configuration changes. A changed module is
// launched so the next time; nothing that runs is touched.
type rescanBody struct {
	Op        string   `json:"op"`
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Changed   []string `json:"changed_pending_reload"`
	Unchanged uint32   `json:"unchanged"`
}

// supervisorRescan reads the roster again. The stub takes new commands for the
// modules it has; it adds and removes none.
func (r *Router) supervisorRescan(f wire.Frame) ([][]byte, error) {
	if _, err := readShape(f.Body, "op", "preview"); err != nil {
		return nil, err
	}
	if r.cfg.Rescan == nil {
		return refuse(f, "rescan_unavailable", "the stub router has no configuration to read again"), nil
	}
	modules, err := r.cfg.Rescan()
	if err != nil {
		return refuse(f, "invalid_daemon_config", err.Error()), nil
	}
	b := rescanBody{Op: opRescan, Added: []string{}, Removed: []string{}, Changed: []string{}}
	for _, cfg := range modules {
		m := r.roster[cfg.ID]
		switch {
		case m == nil:
			return refuse(f, wire.CodeTargetUnavailable, "the stub router adds no modules"), nil
		case reflect.DeepEqual(m.cfg, cfg):
			b.Unchanged++
		default:
			m.cfg = cfg
			b.Changed = append(b.Changed, cfg.ID)
		}
	}
	return answer(f, b), nil
}
