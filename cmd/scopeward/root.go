package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "scopeward",
		Short:         "Scopes for a module router that has none",
		Long:          "Scopes for a module router that has none.\n\n" + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newRun(), newExec(), newCheck(), newDemo(), newLedger(), newVersion(),
		newStatus(), newScopes(), newRoutes(), newLaunches(), newRefusals(), newExplain(), newDrain(), newWait(), newDoctor(), newInstall(), newUninstall())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	judgeArgs(root)
	return root
}
