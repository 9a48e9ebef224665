package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// options are the command line, checked.
type options struct {
	effort   effort
	worlds   []string
	only     string // a glob over metrics' names
	json     string // where the report goes, "-" for stdout, "" for nowhere
	binaries binaries
}

func parseOptions(args []string, errs io.Writer) (options, error) {
	f := flag.NewFlagSet("wirebench", flag.ContinueOnError)
	f.SetOutput(errs)
	short := f.Bool("short", false, "end in three minutes")
	rounds := f.Int("rounds", 0, "number of rounds, 0 for as many as fit the effort")
	only := f.String("only", "*", "measure the metrics whose name matches this `glob`: "+strings.Join(ids(metrics()), " "))
	worlds := f.String("worlds", strings.Join(worldNames(), ","), "the worlds to start")
	var o options
	f.StringVar(&o.json, "json", "", "write all figures as JSON to this `file`, - for stdout in place of the table")
	f.StringVar(&o.binaries.scopeward, "scopeward", "", "the scopeward `binary`, built from this module by default")
	f.StringVar(&o.binaries.router, "router", filepath.Join(routerCache(), "subc-0.24.0"), "the existing router's `binary`")
	f.StringVar(&o.binaries.native, "native", filepath.Join(routerCache(), "subc-0.36.15"), "the `binary` of a router with scopes")
	f.StringVar(&o.binaries.haproxy, "haproxy", "/usr/sbin/haproxy", "HAProxy's `binary`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.effort = fullEffort()
	if *short {
		o.effort = shortEffort()
	}
	if *rounds > 0 {
		o.effort.Rounds = *rounds
	}
	o.only = *only
	o.worlds = strings.Split(*worlds, ",")
	return o, o.validate(f.Args())
}

func (o options) validate(rest []string) error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", rest[0]))
	}
	for _, w := range o.worlds {
		if !slices.Contains(worldNames(), w) {
			errs = append(errs, fmt.Errorf("no world %q, there are %s", w, strings.Join(worldNames(), ", ")))
		}
	}
	if _, err := path.Match(o.only, ""); err != nil {
		errs = append(errs, fmt.Errorf("-only %q is no glob", o.only))
	} else if !slices.ContainsFunc(ids(metrics()), o.wants) {
		errs = append(errs, fmt.Errorf("-only %q matches no metric", o.only))
	}
	return errors.Join(errs...)
}

func (o options) wants(metric string) bool {
	ok, _ := path.Match(o.only, metric)
	return ok
}

func ids(rows []metric) []string {
	names := make([]string, len(rows))
	for i, m := range rows {
		names[i] = m.id
	}
	return names
}

// routerCache is where the recipe for the real routers leaves them.
func routerCache() string {
	if dir := os.Getenv("ORACLE_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "."
	}
	return filepath.Join(dir, "scopeward-oracle")
}

// buildScopeward builds the sidecar into dir.
func buildScopeward(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "scopeward")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "scopeward/cmd/scopeward").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build scopeward (name a binary with -scopeward, or leave ours out with -worlds): %w\n%s", err, out)
	}
	return binary, nil
}
