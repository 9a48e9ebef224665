package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"scopeward/sidecar/config"
)

func newCheck() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "check",
		Short: "Say whether a configuration would be accepted",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := config.Load(file, os.Getenv); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s: ok\n", file)
			return err
		},
	}
	configFlag(c, &file)
	return c
}
