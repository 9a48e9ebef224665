package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

// refusing are the kinds of events that are refusals.
var refusing = [...]string{"refused", "stale", "rejected", "call_refused", "record_refused", "peer_refused"}

// refusals lists the last refusals, or follows them.
type refusals struct {
	reach  reach
	filter api.Filter
	json   bool
	watch  bool
}

func newRefusals() *cobra.Command {
	r := &refusals{}
	c := &cobra.Command{
		Use:   "refusals",
		Short: "List the last refusals, the oldest first, or follow them",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return r.run(c) },
	}
	r.reach.flags(c)
	c.Flags().BoolVar(&r.json, "json", false, "print JSON: the API's answer on one line, or with --watch one event a line")
	c.Flags().BoolVar(&r.watch, "watch", false, "go on with each refusal as it comes")
	c.Flags().StringVar(&r.filter.Owner, "owner", "", "only under this owner's scopes, a `MODULE` id or reserved:ID")
	c.Flags().StringVar(&r.filter.Code, "code", "", "only with this `CODE`")
	c.Flags().IntVar(&r.filter.Limit, "limit", 100, "at most `N`, up to 10000")
	return c
}

func (r *refusals) run(c *cobra.Command) error {
	client, err := r.reach.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, out := c.Context(), c.OutOrStdout()
	if r.watch {
		err := r.follow(ctx, client, out)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	answer, err := client.Refusals(ctx, r.filter)
	if err != nil {
		return err
	}
	if r.json {
		return printJSON(out, answer)
	}
	s := newSheet(out)
	refusalHead(s)
	for i := len(answer.Refusals) - 1; i >= 0; i-- {
		refusalRow(s, answer.Refusals[i])
	}
	return s.flush()
}

// follow subscribes first and reads the past then: nothing is missed, and what is
// in both is shown once.
func (r *refusals) follow(ctx context.Context, client *api.Client, out io.Writer) error {
	stream, err := client.Events(ctx, refusing[:]...)
	if err != nil {
		return err
	}
	defer stream.Close()
	past, err := client.Refusals(ctx, r.filter)
	if err != nil {
		return err
	}
	s := newSheet(out)
	if !r.json {
		refusalHead(s)
	}
	seen := map[uint64]bool{} // events of two threads may come the other way round
	for i := len(past.Refusals) - 1; i >= 0; i-- {
		seen[past.Refusals[i].Seq] = true
		if err := r.print(s, out, past.Refusals[i]); err != nil {
			return err
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("the sidecar has ended the stream")
		}
		if err != nil {
			return err
		}
		if seen[e.Seq] || !r.wants(e) {
			continue
		}
		if err := errors.Join(r.print(s, out, e), s.flush()); err != nil {
			return err
		}
	}
}

func (r *refusals) print(s *sheet, out io.Writer, e api.Event) error {
	if r.json {
		return printJSON(out, e)
	}
	refusalRow(s, e)
	return nil
}

// wants is the filter for what the stream brings.
func (r *refusals) wants(e api.Event) bool {
	owner := r.filter.Owner
	return (owner == "" || e.Owner == owner || e.Owner == "reserved:"+owner) &&
		(r.filter.Code == "" || e.Code == r.filter.Code)
}

func refusalHead(s *sheet) {
	s.row("TIME", "KIND", "CODE", "RULE", "SCOPE", "PRINCIPAL", "PROCESS", "TARGET", "MESSAGE")
}

func refusalRow(s *sheet, e api.Event) {
	scope := ""
	switch {
	case e.ScopeEpoch != nil:
		scope = session(e.Owner, e.Ref, *e.ScopeEpoch)
	case e.Owner != "":
		scope = fmt.Sprintf("%s/%s", name(e.Owner), name(e.Ref))
	}
	s.row(s.clock(e.AtMS), e.Kind, name(e.Code), e.Rule, scope, name(e.Principal), process(e.PID, e.Exe), name(e.Target), e.Message)
}
