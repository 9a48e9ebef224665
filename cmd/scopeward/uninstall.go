package main

import (
	"github.com/spf13/cobra"

	"scopeward/deploy/install"
)

func newUninstall() *cobra.Command {
	var (
		root          string
		dryRun, purge bool
	)
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Take away what install put in place, and restore the router's configuration",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := absoluteRoot(root); err != nil {
				return err
			}
			plan, err := install.Removal(root, purge)
			if err != nil {
				return err
			}
			return carryOut(c.OutOrStdout(), plan, dryRun)
		},
	}
	rootFlag(c, &root, &dryRun)
	c.Flags().BoolVar(&purge, "purge", false, "remove changed files of ours too")
	return c
}
