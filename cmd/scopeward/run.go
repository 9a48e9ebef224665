package main

import (
	"os"

	"github.com/spf13/cobra"

	"scopeward/sidecar"
	"scopeward/sidecar/config"
)

// defaultConfig is where a packaged installation has its configuration.
const defaultConfig = "/etc/scopeward/scopeward.jsonc"

func newRun() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "run",
		Short: "Stand in front of the router until SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.Getenv)
			if err != nil {
				return err
			}
			return sidecar.Run(c.Context(), cfg)
		},
	}
	configFlag(c, &file)
	return c
}

func configFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "config", defaultConfig, "configuration `FILE`, JSON with comments")
}
