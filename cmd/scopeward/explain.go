package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

func newExplain() *cobra.Command {
	var o api.Opening
	var provides string
	r := &reading[api.Explanation]{
		ask:  func(ctx context.Context, c *api.Client) (api.Explanation, error) { return c.Explain(ctx, o) },
		show: showExplanation,
		verdict: func(e api.Explanation) error {
			if e.Verdict == "admitted" {
				return nil
			}
			return noError{fmt.Errorf("the open would be refused %s", e.Code)}
		},
	}
	c := r.bind(&cobra.Command{
		Use:   "explain OWNER REF [EPOCH] --as PRINCIPAL --to MODULE",
		Short: "Say what admission would answer to an open, and which rule decides; exit 3 when it would refuse",
		Args:  cobra.RangeArgs(2, 3),
	})
	c.Flags().StringVar(&o.As, "as", "", "the opener: direct, a module id or reserved:ID, as `PRINCIPAL`")
	c.Flags().StringVar(&o.To, "to", "", "the target `MODULE`")
	c.Flags().StringVar(&provides, "provides", "", "the target's `CAPABILITIES`, separated by commas, in place of those that it declares now")
	c.RunE = func(c *cobra.Command, args []string) error {
		o.Owner, o.Ref = args[0], args[1]
		if len(args) == 3 {
			epoch, err := strconv.ParseUint(args[2], 10, 64)
			if err != nil {
				return usageError{fmt.Errorf("EPOCH %q is no number: give the scope's, as scopes lists it", args[2])}
			}
			o.Epoch = &epoch
		}
		if o.As == "" || o.To == "" {
			return usageError{fmt.Errorf("--as PRINCIPAL and --to MODULE say who opens to whom: see %s --help", c.CommandPath())}
		}
		if c.Flags().Changed("provides") {
			o.Provides = strings.Split(provides, ",")
		}
		return r.run(c)
	}
	c.ValidArgsFunction = completeScope(&r.reach)
	return c
}

func showExplanation(s *sheet, e api.Explanation) {
	s.row("verdict", e.Verdict)
	if e.Code != "" {
		retry := "terminal"
		if e.Retryable {
			retry = "the opener may try again"
		}
		s.row("code", fmt.Sprintf("%s, %s", e.Code, retry))
	}
	s.row("rule", e.Rule)
	if e.Message != "" {
		s.row("because", e.Message)
	}
	if e.Roster != "" {
		s.row("roster", "the owner is "+strings.ReplaceAll(e.Roster, "_", " "))
	}
	provides := map[string]string{
		"caller": "as given", "registration": "as the target declares now",
		"nobody": "since the target is not registered through the sidecar",
	}[e.ProvidesFrom]
	list := names(e.Provides)
	if list == "" {
		list = "nothing"
	}
	s.row("target provides", list+", "+provides)
	if e.CallMode != "" {
		s.row("call_mode", e.CallMode)
	}
	if len(e.Stamp) > 0 {
		s.row("stamp", string(e.Stamp))
	}
	if e.Digest != "" {
		s.row("record", e.Digest)
	}
}
