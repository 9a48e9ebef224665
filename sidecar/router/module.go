package router

import (
	"context"

	"scopeward/proxy/wire"
)

// Module is one configured module, as supervisor.list shows it. A module that
// merely registered is not among them.
type Module struct {
	ID             string `json:"module_id"`
	State          string `json:"state"`
	Enabled        bool   `json:"enabled"`
	LastExitCode   *int   `json:"last_exit_code"`
	LastExitSignal *int   `json:"last_exit_signal"`
}

// StateStopped is the state of a module that ended by itself and is not launched
// again.
const StateStopped = "stopped"

// StoppedCleanly reports whether the module is one that an end of ours can have
// stopped: enabled, and its last process exited 0.
func (m Module) StoppedCleanly() bool {
	return m.Enabled && m.State == StateStopped &&
		m.LastExitCode != nil && *m.LastExitCode == 0 && m.LastExitSignal == nil
}

// Modules asks for every configured module, the disabled ones included. It may
// take a router long: it hashes every module's image.
func (l *Link) Modules(ctx context.Context) ([]Module, error) {
	var reply struct {
		Modules []Module `json:"modules"`
	}
	slow, err := l.aside(ctx)
	if err != nil {
		return nil, err
	}
	err = slow.Do(ctx, wire.OpSupervisorList, op(wire.OpSupervisorList), &reply)
	return reply.Modules, err
}

// Restart has the router launch a module again. It answers when it has.
func (l *Link) Restart(ctx context.Context, moduleID string) error {
	body := struct {
		Op       string `json:"op"`
		ModuleID string `json:"module_id"`
	}{wire.OpSupervisorRestart, moduleID}
	slow, err := l.aside(ctx)
	if err != nil {
		return err
	}
	var ack struct{}
	return slow.Do(ctx, wire.OpSupervisorRestart, body, &ack)
}
