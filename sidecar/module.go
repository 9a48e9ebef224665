package sidecar

import (
	"context"
	"os"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"scopeward/sidecar/config"
	"scopeward/sidecar/systemd"
)

// Module provides a [Sidecar] for the configuration and ties it to the app's
// life. Its invoke is the only one in the program.
func Module(c config.Config) fx.Option {
	return fx.Module("sidecar",
		fx.Supply(c),
		fx.Provide(
			func(c config.Config) (*zap.Logger, zap.AtomicLevel) { return NewLogger(c.Log) },
			systemd.Open,
			func(c config.Config, log *zap.Logger, level zap.AtomicLevel, m *systemd.Manager) *Sidecar {
				return New(Params{Config: c, Log: log, Level: &level, Manager: m})
			},
		),
		fx.Invoke(func(lc fx.Lifecycle, s *Sidecar) { lc.Append(fx.StartStopHook(s.Start, s.Stop)) }),
	)
}

// How long a start and a stop may take. A stop drains first.
const (
	startTimeout = 15 * time.Second
	stopTimeout  = drainFor + 5*time.Second
)

// RunParams are what a daemon is told to run with.
type RunParams struct {
	Config config.Config
	// Load reads the configuration again, and Reload delivers whenever it shall.
	Load   func() (config.Config, error)
	Reload <-chan os.Signal
}

// Run runs the sidecar until ctx ends, which is a clean end, or until an
// operator has to correct something, which is an error of one line. It gives up
// privileges, which is for good: it is for a process that does nothing else.
func Run(ctx context.Context, p RunParams) error {
	var s *Sidecar
	app := fx.New(Module(p.Config), fx.Populate(&s), fx.NopLogger)
	if err := app.Err(); err != nil {
		return dig.RootCause(err)
	}
	s.conceal()
	// A signal during the start is taken when it is through: half a start would
	// leave half a sidecar.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := app.Start(starting); err != nil {
		return err
	}
	s.forsake()
	failure := s.serve(ctx, p)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := app.Stop(stopping); failure == nil {
		return err
	}
	return failure
}

// serve waits for the end, and reloads in the meantime.
func (s *Sidecar) serve(ctx context.Context, p RunParams) error {
	for {
		select {
		case <-p.Reload:
			s.reload(p.Load)
		case err := <-s.Failed():
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
