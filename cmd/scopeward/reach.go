package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"scopeward/sidecar/config"
	"scopeward/sidecar/operator/api"
)

// reach is how a command finds the sidecar that it asks.
type reach struct {
	config string
	socket string
}

func (r *reach) flags(c *cobra.Command) {
	configFlag(c, &r.config)
	c.Flags().StringVar(&r.socket, "socket", "", "the sidecar's operator `SOCKET`, in place of its configuration's")
}

// client makes a client of the sidecar: --socket names it, or else the
// configuration does.
func (r *reach) client(c *cobra.Command) (*api.Client, error) {
	if r.socket != "" {
		return api.NewClient(r.socket), nil
	}
	cfg, err := r.load(c, "the sidecar's socket with --socket")
	if err != nil {
		return nil, err
	}
	return api.NewClient(cfg.Operator.Socket), nil
}

// load reads the configuration. Where nobody named one and none is at the usual
// place, it says what else could be named.
func (r *reach) load(c *cobra.Command, instead string) (config.Config, error) {
	if _, err := os.Stat(r.config); errors.Is(err, fs.ErrNotExist) && !c.Flags().Changed("config") {
		return config.Config{}, usageError{fmt.Errorf("there is no %s: name %s, or its configuration with --config", r.config, instead)}
	}
	return config.Load(r.config, os.Getenv)
}
