package main

import (
	"context"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

func newLaunches() *cobra.Command {
	r := &reading[api.Launches]{
		ask:  func(ctx context.Context, c *api.Client) (api.Launches, error) { return c.Launches(ctx) },
		show: showLaunches,
	}
	return r.bind(&cobra.Command{
		Use:   "launches",
		Short: "List the router's living launches and the registered modules",
		Args:  cobra.NoArgs,
	})
}

func showLaunches(s *sheet, a api.Launches) {
	s.row("LAUNCHED", "GENERATION", "PID", "CURRENT")
	for _, l := range a.Launches {
		s.row(name(l.ModuleID), l.Generation, l.PID, yes(l.Current))
	}
	s.gap()
	s.row("REGISTERED", "CONN", "NONCE", "GENERATION", "PROCESS", "PROVIDES")
	for _, r := range a.Registrations {
		generation := any(r.Generation)
		if r.Generation == 0 {
			generation = ""
		}
		s.row(name(r.ModuleID), r.Conn, r.Verdict, generation, process(r.PID, r.Exe), names(r.Provides))
	}
}
