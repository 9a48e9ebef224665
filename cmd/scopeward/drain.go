package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

func newDrain() *cobra.Command {
	var (
		to   reach
		req  api.DrainRequest
		json bool
	)
	c := &cobra.Command{
		Use:   "drain {OWNER REF [EPOCH] | --conn N} --why TEXT",
		Short: "Close live routes by hand, a scope's or an opener's; openers may come back",
		Args:  cobra.MaximumNArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if err := drained(&req, args); err != nil {
				return err
			}
			client, err := to.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			answer, err := client.Drain(c.Context(), req)
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), answer)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "closed %d routes\n", answer.Routes)
			return err
		},
	}
	to.flags(c)
	c.Flags().BoolVar(&json, "json", false, "print the answer as the operator API gives it")
	c.Flags().Uint64Var(&req.Conn, "conn", 0, "only routes of this opener's connection, as routes lists it, `N`")
	c.Flags().StringVar(&req.Why, "why", "", "`TEXT` for the log: why they are closed")
	c.ValidArgsFunction = completeScope(&to)
	return c
}

// drained reads what is to be closed.
func drained(req *api.DrainRequest, args []string) error {
	switch {
	case len(args) == 1:
		return usageError{fmt.Errorf("a scope is given by OWNER and REF")}
	case len(args) == 0 && req.Conn == 0:
		return usageError{fmt.Errorf("say whose routes: OWNER and REF of a scope, or --conn of an opener")}
	case req.Why == "":
		return usageError{fmt.Errorf("--why is missing: say for the log why routes are closed")}
	case len(args) == 0:
		return nil
	}
	req.Owner, req.Ref = args[0], args[1]
	if len(args) == 3 {
		epoch, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return usageError{fmt.Errorf("EPOCH %q is no number: give the scope's, as scopes lists it", args[2])}
		}
		req.ScopeEpoch = &epoch
	}
	return nil
}
