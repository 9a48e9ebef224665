package sidecar

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"scopeward/bpf"
	"scopeward/proxy"
	"scopeward/sidecar/config"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/router"
	"scopeward/sidecar/systemd"
)

// probeEvery is how often attribution tries itself: its programs can be detached
// behind our back.
const probeEvery = 30 * time.Second

// attribution is where knowledge of processes comes from, or the reason why
// there is none. Its zero source attributes nothing.
type attribution struct {
	source *bpf.Attributor // nil exactly when mode is off
	why    string          // why mode is not what was configured
	log    *zap.Logger

	mu    sync.Mutex
	mode  config.AttributionMode // what is done in effect
	fault string                 // what the last self-probe found, "" when it passed
}

// openAttribution opens the source that the configuration asks for. Observing
// without any source is a state with a name; enforcing without one is refused.
//
// What an earlier process stored goes on without a gap when it is whole.
func openAttribution(c config.Attribution, inherited []*os.File, log *zap.Logger) (*attribution, error) {
	a := &attribution{mode: c.Mode, log: log}
	if c.Mode == config.AttributionOff {
		return a, nil
	}
	source, err := bpf.OpenAny(bpf.Params{Log: log, CgroupPath: c.Cgroup, Inherited: inherited})
	if err == nil {
		a.source = source
		status := source.Status()
		log.Info("connections are attributed to processes", zap.Stringer("source", status.Source),
			zap.String("why", status.Why), zap.String("mode", string(c.Mode)))
		return a, nil
	}
	var ns *bpf.NotSupportedError
	if c.Mode == config.AttributionObserve && errors.As(err, &ns) {
		a.mode, a.why = config.AttributionOff, ns.Reason
		log.Warn("connections are not attributed: no source of attribution works here",
			zap.String("why", ns.Reason), zap.String("remedy", ns.Remedy))
		return a, nil
	}
	remedy := `set it to "off"`
	if c.Mode == config.AttributionEnforce {
		remedy = `set it to "observe" or "off"`
	}
	if errors.As(err, &ns) && ns.Remedy != "" {
		remedy = ns.Remedy + ", or " + remedy
	}
	return nil, &StartError{
		Subject: `"attribution.mode" is "` + string(c.Mode) + `"`,
		What:    "no source of attribution works here: " + err.Error(), Remedy: remedy, Err: err,
	}
}

// effective is the mode that is in effect.
func (a *attribution) effective() config.AttributionMode {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mode
}

// mayBe reports whether a running source can change to mode.
func (a *attribution) mayBe(mode config.AttributionMode) bool {
	return a.source != nil && mode != config.AttributionOff
}

func (a *attribution) setMode(mode config.AttributionMode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = mode
}

// store gives the programs to the service manager, so that a restart leaves no
// gap. With nothing to give, what an earlier process stored is taken out.
func (a *attribution) store(m *systemd.Manager) {
	var files []*os.File
	if a.source != nil {
		var err error
		if files, err = a.source.Files(); err != nil {
			a.log.Warn("the programs can't be handed to the service manager", zap.Error(err))
		}
	}
	if err := m.Store(files); err != nil {
		a.log.Warn("the programs were not handed to the service manager: a restart has a gap", zap.Error(err))
	}
	for _, f := range files {
		f.Close()
	}
}

// attributor is what the launch table asks, nil when nothing is attributed.
func (a *attribution) attributor() launch.Attributor {
	if a.source == nil {
		return nil
	}
	return processes{a.source}
}

// own tells the source which port is ours. It comes before anybody can know it.
func (a *attribution) own(port uint16) error {
	if a.source == nil {
		return nil
	}
	return a.source.SetPorts(bpf.RoleOwn, port)
}

// router tells the source where the router listens now, so that connects past us
// are seen.
func (a *attribution) router(link *router.Link) {
	if a.source == nil {
		return
	}
	_, text, err := net.SplitHostPort(link.Addr())
	port, perr := strconv.ParseUint(text, 10, 16)
	if err != nil || perr != nil {
		return
	}
	if err := a.source.SetPort(uint16(port), bpf.RoleRouter); err != nil {
		a.log.Warn("connections past the sidecar are not seen", zap.Error(err))
	}
	if id, err := bpf.InstanceOf(int(link.File.PID)); err == nil {
		a.source.Exclude(id)
	}
}

// watch tries the source at once and then from time to time until ctx ends.
func (a *attribution) watch(ctx context.Context) {
	if a.source == nil {
		return
	}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		a.try(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (a *attribution) try(ctx context.Context) {
	err := a.source.SelfProbe(ctx)
	if ctx.Err() != nil {
		return
	}
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	a.mu.Lock()
	before := a.fault
	a.fault = fault
	a.mu.Unlock()
	switch {
	case fault != "" && before == "":
		a.log.Error("attribution does not see our own connects: who calls is unknown until it does", zap.Error(err))
	case fault == "" && before != "":
		a.log.Info("attribution sees our own connects again")
	}
}

func (a *attribution) close() {
	if a.source == nil {
		return
	}
	if err := a.source.Close(); err != nil {
		a.log.Warn("attribution was not closed cleanly", zap.Error(err))
	}
}

// processes is the source as the launch table asks it.
type processes struct{ source *bpf.Attributor }

func (p processes) Peer(s proxy.Socket) (launch.Process, func()) {
	peer := p.source.Peer(bpf.Socket(s))
	who := peer.Process()
	return launch.Process{PID: uint32(who.PID), Start: who.Start, Exe: who.Exe, Reason: who.Reason},
		func() { peer.Close() }
}

// Waits implements [launch.Attributor]. The hooks' records are at hand; a search of
// /proc takes as long as there are processes.
func (p processes) Waits() bool { return p.source.Source() != bpf.SourceEBPF }

func (p processes) Lookup(pid uint32) (launch.Process, bool) {
	i, err := bpf.InstanceOf(int(pid))
	return ofInstance(i), err == nil
}

func (p processes) Parent(child launch.Process) (launch.Process, bool) {
	i, err := bpf.Parent(bpf.Instance{PID: int(child.PID), Start: child.Start})
	return ofInstance(i), err == nil && i.PID != 0
}

func ofInstance(i bpf.Instance) launch.Process {
	return launch.Process{PID: uint32(i.PID), Start: i.Start}
}
