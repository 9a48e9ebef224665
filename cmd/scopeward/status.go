package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

func newStatus() *cobra.Command {
	r := &reading[api.Status]{
		ask:  func(ctx context.Context, c *api.Client) (api.Status, error) { return c.Status(ctx) },
		show: showStatus,
		verdict: func(s api.Status) error {
			if s.Health.Ready {
				return nil
			}
			return noError{fmt.Errorf("the sidecar is not ready: %s", unready(s))}
		},
	}
	return r.bind(&cobra.Command{
		Use:   "status",
		Short: "Show the sidecar at a glance; exit 3 when it is not ready",
		Args:  cobra.NoArgs,
	})
}

func showStatus(s *sheet, st api.Status) {
	s.row("ready", yes(st.Health.Ready))
	s.row("sidecar", fmt.Sprintf("%s, pid %d, up %s", st.Version, st.PID, s.ago(st.StartedAtMS)))
	s.row("listening", st.Listen)
	s.row("published", fmt.Sprintf("%s, %s", yes(st.Published), name(st.ConnectionFile)))
	s.row("configuration", configuration(s, st.Config))
	s.row("router", router(s, st.Router))
	s.row("scopes", scopesLine(st))
	s.row("attribution", attribution(st.Attribution))
	t := st.Totals
	s.row("connections", fmt.Sprintf("%d, of modules %d", t.Sessions, t.Modules))
	s.row("table", fmt.Sprintf("scopes %d, routes %d, pending binds %d, presence %d", t.Scopes, t.Routes, t.Pending, t.Presence))
	s.row("decisions", decisions(st))
	s.row("probe", probe(st.Health))
	if len(st.Attribution.Bypassing) > 0 {
		s.gap()
		s.row("BYPASS PID", "UID", "EXE", "TIMES", "LAST")
		for _, b := range st.Attribution.Bypassing {
			s.row(b.PID, b.UID, name(b.Exe), b.Count, s.ago(b.LastMS))
		}
	}
	if len(st.Owners) == 0 {
		return
	}
	s.gap()
	s.row("OWNER", "AUTHORIZED", "SCOPES", "DEADLINES", "TOMBSTONES", "AUTHORITY", "GENERATION", "LAST SYNC")
	for _, o := range st.Owners {
		authority := "free"
		if o.Authority != 0 {
			authority = fmt.Sprintf("conn %d", o.Authority)
		}
		s.row(name(o.Owner), yes(o.Authorized), o.Scopes, o.Deadlines, o.Tombstones, authority, o.Generation, s.ago(o.LastSyncAtMS))
	}
}

func configuration(s *sheet, c api.Config) string {
	line := "as at the start"
	if c.ReloadedAtMS != 0 {
		line = "reloaded " + s.ago(c.ReloadedAtMS) + " ago"
	}
	if len(c.Waiting) > 0 {
		line += "; CHANGED, and waits for a restart: " + strings.Join(c.Waiting, ", ")
	}
	if c.Fault != "" {
		line += fmt.Sprintf("; REFUSED %s ago: %s", s.ago(c.RefusedAtMS), c.Fault)
	}
	return line
}

func router(s *sheet, r api.Router) string {
	if !r.Attached {
		return fmt.Sprintf("absent: %s (%s)", r.Why, name(r.File))
	}
	feed := ""
	if !r.SpawnFeed {
		feed = ", no spawn feed"
	}
	return fmt.Sprintf("%s, pid %d at %s, for %s%s", name(r.Version), r.PID, r.Address, s.ago(r.SinceMS), feed)
}

func scopesLine(st api.Status) string {
	switch st.Scopes {
	case "sidecar":
		return fmt.Sprintf("served by the sidecar, owners synced %d, incarnation %s", st.Totals.Synced, st.Incarnation)
	case "router":
		return "served by the router itself, passed through unchanged"
	}
	return "served by nobody"
}

func attribution(a api.Attribution) string {
	line := fmt.Sprintf("%s by %s, known %d, unknown %d, lost %d, mismatches %d, bypasses %d",
		a.Mode, a.Source, a.Known, a.Unknown, a.Lost, a.Mismatches, a.Bypasses)
	if a.Source == "none" {
		line = fmt.Sprintf("%s: %s", a.Mode, a.Why)
	}
	if a.Fault != "" {
		line += "; FAULT: " + a.Fault
	}
	return line
}

func decisions(st api.Status) string {
	parts := make([]string, len(st.Decisions))
	for i, d := range st.Decisions {
		parts[i] = fmt.Sprintf("%s %d", d.Kind, d.Count)
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	if st.LogDropped > 0 {
		parts = append(parts, fmt.Sprintf("left out of the log %d", st.LogDropped))
	}
	return strings.Join(parts, ", ")
}

func probe(h api.Health) string {
	parts := make([]string, len(h.Steps))
	for i, s := range h.Steps {
		parts[i] = s.Name + " " + s.State
		if s.State == "failed" {
			parts[i] += " (" + s.Detail + ")"
		}
	}
	return strings.Join(parts, ", ")
}

// unready says what keeps the sidecar from being ready.
func unready(st api.Status) string {
	if !st.Router.Attached {
		return "there is no router: " + st.Router.Why
	}
	if !st.Published {
		return "its connection file is not published"
	}
	return "its probe through itself failed: " + probe(st.Health)
}
