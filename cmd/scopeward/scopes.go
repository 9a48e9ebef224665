package main

import (
	"context"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

func newScopes() *cobra.Command {
	var f api.Filter
	var long bool
	r := &reading[api.Scopes]{
		changes: []string{"scope_created", "scope_ended", "scope_changed", "owner_synced"},
		ask:     func(ctx context.Context, c *api.Client) (api.Scopes, error) { return c.Scopes(ctx, f) },
		show: func(s *sheet, a api.Scopes) {
			if long {
				showScopesLong(s, a)
				return
			}
			showScopes(s, a)
		},
	}
	c := r.bind(&cobra.Command{Use: "scopes", Short: "List the live scopes", Args: cobra.NoArgs})
	c.Flags().StringVar(&f.Owner, "owner", "", "only this owner's, a `MODULE` id or reserved:ID")
	c.Flags().StringVar(&f.Ref, "ref", "", "only those of this `REF`")
	c.Flags().BoolVar(&long, "long", false, "print every member of each, one a line")
	return c
}

func showScopes(s *sheet, a api.Scopes) {
	s.row("OWNER", "REF", "EPOCH", "KIND", "AGENT", "CARRIERS", "PARENT", "PROOF", "EXPIRES", "ROUTES", "PENDING", "DIGEST")
	for _, sc := range a.Scopes {
		s.row(name(sc.Owner), name(sc.Ref), sc.ScopeEpoch, sc.Kind, name(sc.AgentID), len(sc.Carriers), sc.ParentState,
			yes(sc.ProofRequired), s.ahead(sc.ExpiresAtMS), sc.Routes, sc.Pending, sc.Digest[:12])
	}
}

func showScopesLong(s *sheet, a api.Scopes) {
	for i, sc := range a.Scopes {
		if i > 0 {
			s.gap()
		}
		s.row("scope", session(sc.Owner, sc.Ref, sc.ScopeEpoch))
		s.row("kind", sc.Kind)
		s.row("version", sc.Version)
		s.row("digest", sc.Digest)
		s.row("agent_id", name(sc.AgentID))
		s.row("delegates", yes(sc.Delegates))
		s.row("flow_id", name(sc.FlowID))
		s.row("run_id", name(sc.RunID))
		s.row("owner authorized", yes(sc.OwnerAuthorized))
		s.row("proof required", yes(sc.ProofRequired))
		s.row("expires in", s.ahead(sc.ExpiresAtMS))
		if p := sc.Parent; p != nil {
			s.row("parent", session(p.Owner, p.Ref, p.ScopeEpoch)+" "+sc.ParentState)
		}
		for _, c := range sc.Carriers {
			to := "any module"
			if len(c.Targets) > 0 {
				to = names(c.Targets)
			}
			s.row("carrier", name(c.Principal)+" to "+to)
		}
		s.row("child owners", names(sc.ChildOwners))
		s.row("routes", sc.Routes)
		s.row("pending binds", sc.Pending)
		s.row("presence", sc.Presence)
	}
}
