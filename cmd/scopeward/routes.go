package main

import (
	"context"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

func newRoutes() *cobra.Command {
	var f api.Filter
	r := &reading[api.Routes]{
		ask:  func(ctx context.Context, c *api.Client) (api.Routes, error) { return c.Routes(ctx, f) },
		show: showRoutes,
	}
	c := r.bind(&cobra.Command{Use: "routes", Short: "List the scoped routes, live and in flight", Args: cobra.NoArgs})
	c.Flags().StringVar(&f.Owner, "owner", "", "only under this owner's scopes, a `MODULE` id or reserved:ID")
	c.Flags().StringVar(&f.Ref, "ref", "", "only under scopes of this `REF`")
	c.Flags().StringVar(&f.Target, "target", "", "only those that this `MODULE` serves")
	return c
}

func showRoutes(s *sheet, a api.Routes) {
	s.row("ROUTE", "STATE", "SCOPE", "OPENER", "CONN", "CHANNEL", "PROCESS", "TARGET", "TARGET CONN")
	for _, r := range a.Routes {
		state, channel := "live", any(r.Channel)
		if !r.Live {
			state = "in flight"
		}
		if r.Channel == 0 {
			channel = ""
		}
		s.row(r.Route, state, session(r.Owner, r.Ref, r.ScopeEpoch), name(r.Principal), r.Conn, channel,
			process(r.PID, r.Exe), name(r.Target), r.TargetConn)
	}
}
