package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

// askEvery is how often wait asks.
const askEvery = 200 * time.Millisecond

// waiting is a wait for the sidecar.
type waiting struct {
	reach   reach
	until   string
	timeout time.Duration
}

func newWait() *cobra.Command {
	w := &waiting{}
	c := &cobra.Command{
		Use:   "wait",
		Short: "Block until the sidecar is ready: clients can open routes through it",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return w.run(c) },
	}
	w.reach.flags(c)
	c.Flags().StringVar(&w.until, "for", "ready", "`STATE` to wait for: ready, or live for a sidecar that may have no router yet")
	c.Flags().DurationVar(&w.timeout, "timeout", 0, "how long to wait; 0 waits without end")
	return c
}

func (w *waiting) run(c *cobra.Command) error {
	if w.until != "ready" && w.until != "live" {
		return usageError{fmt.Errorf("--for %q is no state: use ready or live", w.until)}
	}
	if w.timeout < 0 {
		return usageError{errors.New("--timeout must not be negative; 0 waits without end")}
	}
	client, err := w.reach.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := c.Context()
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("waited %v", w.timeout))
		defer cancel()
	}
	said := ""
	for {
		why, err := w.missing(ctx, client)
		switch {
		case ctx.Err() != nil:
			return timeoutError{fmt.Errorf("%w: %s", context.Cause(ctx), said)}
		case err != nil:
			return err
		case why == "":
			return nil
		case why != said:
			fmt.Fprintln(c.ErrOrStderr(), "scopeward: waiting: "+why)
			said = why
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
		}
	}
}

// missing says what keeps the sidecar from the state that is waited for, "" when
// nothing does. A sidecar that does not answer yet is waited for too.
func (w *waiting) missing(ctx context.Context, client *api.Client) (string, error) {
	h, err := client.Health(ctx)
	switch {
	case errors.Is(err, api.ErrUnavailable):
		return err.Error(), nil
	case err != nil:
		return "", err
	case w.until == "live" && h.Live, h.Ready:
		return "", nil
	}
	for _, s := range h.Steps {
		if s.State == "failed" || s.State == "absent" && s.Name != "attribute" {
			return s.Name + ": " + s.Detail, nil
		}
	}
	return "its connection file is not published", nil
}
