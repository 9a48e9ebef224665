package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"scopeward/sidecar/operator"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "scopeward "+operator.Version())
			return err
		},
	}
}
