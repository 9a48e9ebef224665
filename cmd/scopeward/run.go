package main

import (
	"os"
	"os/signal"
	"syscall"

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
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			load := func() (config.Config, error) { return config.Load(file, os.Getenv) }
			cfg, err := load()
			if err != nil {
				return err
			}
			return sidecar.Run(c.Context(), sidecar.RunParams{Config: cfg, Load: load, Reload: reload})
		},
	}
	configFlag(c, &file)
	return c
}

func configFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "config", defaultConfig, "configuration `FILE`, JSON with comments")
}
