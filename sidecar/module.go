package sidecar

import (
	"context"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"scopeward/sidecar/config"
)

// Module provides a [Sidecar] for the configuration and ties it to the app's
// life. Its invoke is the only one in the program.
func Module(c config.Config) fx.Option {
	return fx.Module("sidecar",
		fx.Supply(c),
		fx.Provide(
			func(c config.Config) (*zap.Logger, zap.AtomicLevel) { return NewLogger(c.Log) },
			func(c config.Config, log *zap.Logger) *Sidecar { return New(Params{Config: c, Log: log}) },
		),
		fx.Invoke(func(lc fx.Lifecycle, s *Sidecar) { lc.Append(fx.StartStopHook(s.Start, s.Stop)) }),
	)
}

// How long a start and a stop may take. A stop drains first.
const (
	startTimeout = 15 * time.Second
	stopTimeout  = drainFor + 5*time.Second
)

// Run runs the sidecar until ctx ends, which is a clean end, or until an
// operator has to correct something, which is an error of one line.
func Run(ctx context.Context, c config.Config) error {
	var s *Sidecar
	app := fx.New(Module(c), fx.Populate(&s), fx.NopLogger)
	if err := app.Err(); err != nil {
		return dig.RootCause(err)
	}
	// A signal during the start is taken when it is through: half a start would
	// leave half a sidecar.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := app.Start(starting); err != nil {
		return err
	}
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.Failed():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := app.Stop(stopping); failure == nil {
		return err
	}
	return failure
}
