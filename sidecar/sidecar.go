package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"scopeward/bpf"
	"scopeward/proxy"
	"scopeward/proxy/connfile"
	"scopeward/sidecar/config"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/ledger"
	"scopeward/sidecar/operator"
	"scopeward/sidecar/operator/api"
	"scopeward/sidecar/systemd"
	"scopeward/table"
)

// drainFor bounds the drain of a stop: after it sessions are closed as they are.
const drainFor = 5 * time.Second

// healSuffix is added to connection_file for the name of the heal state.
const healSuffix = ".modules"

// Params are what a sidecar needs for life.
type Params struct {
	Config  config.Config
	Log     *zap.Logger
	Level   *zap.AtomicLevel // of Log, for a reload; nil: it stays
	Manager *systemd.Manager // nil: there is none
}

// Sidecar is the running application. Start and Stop are called once each.
type Sidecar struct {
	cfg     config.Config // as we started
	log     *zap.Logger
	level   *zap.AtomicLevel
	manager *systemd.Manager

	reloading sync.Mutex
	running   config.Config // what is in effect, guarded by reloading
	reloads   atomic.Pointer[api.Config]

	publication *publication
	attribution *attribution
	launches    *launch.Table
	healer      *healer
	server      *proxy.Server
	ledger      *ledger.Ledger // nil: none is kept
	keeper      *keeper
	listener    net.Listener
	operation   operation

	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error
}

// New returns a sidecar that has not begun.
func New(p Params) *Sidecar {
	s := &Sidecar{
		cfg: p.Config, running: p.Config, log: p.Log.Named("sidecar"),
		level: p.Level, manager: p.Manager, failed: make(chan error, 1),
	}
	s.reloads.Store(&api.Config{Waiting: []string{}})
	if s.manager == nil {
		s.manager = &systemd.Manager{}
	}
	return s
}

// Failed delivers the first error that ends a running sidecar: something that an
// operator has to correct.
func (s *Sidecar) Failed() <-chan error { return s.failed }

// Addr is where the sidecar accepts.
func (s *Sidecar) Addr() net.Addr { return s.listener.Addr() }

// Router is the router's state.
func (s *Sidecar) Router() RouterState { return s.keeper.State() }

// Start claims the path, listens, and begins to look for the router. It returns
// when it is listening and watching. An error leaves nothing behind and is one
// line for an operator.
func (s *Sidecar) Start(ctx context.Context) error {
	undo := []func(){}
	fail := func(err error) error {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
		return err
	}
	s.publication = newPublication(s.cfg.ConnectionFile, s.cfg.Router.ConnectionFile, s.log)
	if err := s.publication.claim(ctx); err != nil {
		return fail(err)
	}
	undo = append(undo, s.publication.release)
	var err error
	undo = append(undo, s.manager.Release)
	if s.attribution, err = openAttribution(s.cfg.Attribution, s.manager.Inherited(), s.log); err != nil {
		return fail(err)
	}
	undo = append(undo, s.attribution.close)
	if s.listener, err = s.listen(ctx); err != nil {
		return fail(err)
	}
	undo = append(undo, func() { s.listener.Close() })
	port := s.listener.Addr().(*net.TCPAddr).Port
	if err := s.attribution.own(uint16(port)); err != nil {
		return fail(fmt.Errorf("attribution of port %d: %w", port, err))
	}
	socket, err := operator.Listen(ctx, s.cfg.Operator.Socket)
	if err != nil {
		return fail(err)
	}
	undo = append(undo, func() { socket.Close() })
	undo = append(undo, func() { s.closeLedger(ctx) })
	undo = append(undo, func() { s.operation.close(ctx) })
	if err := s.build(); err != nil {
		return fail(err)
	}
	undo = append(undo, func() { s.server.Shutdown(ctx) })
	if err := s.operate(ctx, socket); err != nil {
		return fail(err)
	}
	s.attribution.store(s.manager)
	s.manager.Release()
	s.run()
	s.announce()
	return nil
}

// listen takes the service manager's socket, or opens our port.
func (s *Sidecar) listen(ctx context.Context) (net.Listener, error) {
	l, err := s.manager.Listener()
	switch {
	case err != nil:
		return nil, &StartError{"the socket unit", err.Error(), "give it one ListenStream such as 127.0.0.1:7380", err}
	case l == nil:
		return listen(ctx, s.cfg.Listen)
	}
	s.log.Info("the service manager listens for us", zap.Stringer("address", l.Addr()), zap.String("listen", s.cfg.Listen))
	return l, nil
}

// listen opens our port, or says who is to give way.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := bpf.ListenTCP(ctx, addr)
	if err == nil {
		return l, nil
	}
	subject := fmt.Sprintf("\"listen\" %q", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &StartError{subject, "another process listens there", "choose another port, or 0 for a free one", err}
	case errors.Is(err, syscall.EACCES):
		return nil, &StartError{subject, "this user may not listen there", "choose a port over 1023, or 0 for a free one", err}
	}
	return nil, &StartError{subject, "can't be listened on: " + err.Error(), "choose another address, such as 127.0.0.1:0", err}
}

func (s *Sidecar) build() error {
	id := newIdentity()
	s.operation = newOperation(s.log)
	s.launches = launch.New(launch.Params{
		Log: s.log.Named("launch"), Mode: s.attribution.effective(), Match: s.cfg.Attribution.Match,
		Attributor: s.attribution.attributor(), Report: s.operation.journal.Mismatch,
	})
	s.operation.journal.Attribute(s.launches)
	statePath := s.cfg.ConnectionFile + healSuffix
	if !s.cfg.Heal {
		statePath = ""
	}
	s.healer = newHealer(statePath, s.log)
	s.healer.load()
	told := registrar{s.launches, s.healer}
	params := proxy.Params{
		Log: s.log.Named("proxy"), Peers: told, Launches: told,
		Recorder: s.operation.journal, Key: id.key, DaemonID: id.daemonID,
		AuthorityOwners: s.cfg.ScopeAuthorityOwners,
	}
	if err := s.openLedger(&params); err != nil {
		return err
	}
	server, err := proxy.NewServer(params)
	if err != nil {
		return err
	}
	s.server = server
	addr := s.listener.Addr().(*net.TCPAddr)
	s.keeper = &keeper{
		path: s.cfg.Router.ConnectionFile, scopes: s.cfg.Scopes, log: s.log,
		server: server, launches: s.launches, publication: s.publication,
		healer: s.healer, attribution: s.attribution,
		file: connfile.File{
			Endpoints: []connfile.Endpoint{{Host: addr.IP.String(), Port: uint16(addr.Port)}},
			Key:       id.key, DaemonID: id.daemonID, PID: uint32(os.Getpid()),
		},
	}
	return nil
}

// run starts every goroutine of the sidecar. Stop waits for all of them.
func (s *Sidecar) run() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if err := s.server.Serve(s.listener); err != nil {
		s.fail(err)
	}
	s.wg.Go(func() { s.healer.run(ctx) })
	s.wg.Go(func() { s.attribution.watch(ctx) })
	s.wg.Go(func() { s.supervise(ctx) })
	s.wg.Go(func() { s.until(ctx, s.publication.guard) })
	s.wg.Go(func() { s.until(ctx, s.keeper.run) })
	s.log.Info("listening", zap.Stringer("address", s.listener.Addr()))
}

func (s *Sidecar) until(ctx context.Context, run func(context.Context) error) {
	if err := run(ctx); err != nil && ctx.Err() == nil {
		s.fail(err)
	}
}

func (s *Sidecar) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Stop withdraws our file, stops accepting, drains live routes with a reason
// that lets their openers come back, closes every session and waits for every
// goroutine, or for ctx.
func (s *Sidecar) Stop(ctx context.Context) error {
	if err := s.manager.Stopping(stopTimeout); err != nil {
		s.log.Warn("the service manager was not told that we stop", zap.Error(err))
	}
	s.publication.withdraw()
	s.healer.hold()
	s.server.Deafen()
	draining, cancel := context.WithTimeout(ctx, drainFor)
	if n := s.server.Evict(draining, 0, func(table.ScopeID) bool { return true }); n > 0 {
		s.log.Info("live routes were closed for a restart", zap.Int("routes", n))
	}
	cancel()
	s.healer.hold()
	s.cancel()
	err := s.server.Shutdown(ctx)
	s.launches.Detach()
	s.wg.Wait()
	err = errors.Join(err, s.operation.close(ctx), s.closeLedger(ctx))
	s.attribution.close()
	s.publication.release()
	if err == nil {
		clear(s.keeper.file.Key) // nobody uses it any more
	}
	s.log.Info("stopped")
	return err
}
