package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator/api"
)

// completeIn bounds what a shell waits for a completion.
const completeIn = time.Second

// completeScope completes OWNER, REF and EPOCH from the live scopes.
func completeScope(to *reach) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		client, err := to.client(c)
		if err != nil || len(args) > 2 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		var f api.Filter
		if len(args) > 0 {
			f.Owner = args[0]
		}
		if len(args) > 1 {
			f.Ref = args[1]
		}
		ctx, cancel := context.WithTimeout(c.Context(), completeIn)
		defer cancel()
		answer, err := client.Scopes(ctx, f)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []string
		for _, s := range answer.Scopes {
			part := [...]string{strings.TrimPrefix(s.Owner, "reserved:"), s.Ref, fmt.Sprint(s.ScopeEpoch)}[len(args)]
			if strings.HasPrefix(part, toComplete) && (len(found) == 0 || found[len(found)-1] != part) {
				found = append(found, part)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
