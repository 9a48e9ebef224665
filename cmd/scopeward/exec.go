package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"scopeward/sidecar/wrapper"
)

func newExec() *cobra.Command {
	var (
		file string
		wait time.Duration
	)
	c := &cobra.Command{
		Use:   "exec --connection-file FILE [--wait DURATION] -- PROGRAM [ARGUMENT]...",
		Short: "Become a module's program that finds the sidecar in place of the router",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return execute(c.Context(), file, wait, args)
		},
	}
	c.Flags().StringVar(&file, "connection-file", "", "the sidecar's connection `FILE`")
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait for it; 0 waits without end")
	c.Flags().SetInterspersed(false)
	return c
}

func execute(ctx context.Context, file string, wait time.Duration, args []string) error {
	if file == "" || !filepath.IsAbs(file) {
		return usageError{errors.New("--connection-file must be the absolute path that the sidecar publishes")}
	}
	if wait < 0 {
		return usageError{errors.New("--wait must not be negative; 0 waits without end")}
	}
	program, err := wrapper.Find(args[0])
	if err != nil {
		return err
	}
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, fmt.Errorf("waited %v: start the sidecar, or wait longer with --wait", wait))
		defer cancel()
	}
	err = wrapper.Await(ctx, file, func(why string) {
		fmt.Fprintf(os.Stderr, "scopeward: waiting for the sidecar's connection file %q: %s\n", file, why)
	})
	if err != nil && ctx.Err() != nil {
		return timeoutError{fmt.Errorf("connection file %q: %w", file, err)}
	}
	if err != nil {
		return err
	}
	newArgs, env := wrapper.Rewrite(args, os.Environ(), file)
	return wrapper.Exec(program, newArgs, env)
}
