package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"scopeward/deploy/install"
)

func newInstall() *cobra.Command {
	var (
		in     install.Params
		dryRun bool
	)
	c := &cobra.Command{
		Use:   "install",
		Short: "Put units, drop-ins and configuration in place",
		Long: `Install shows its plan and follows it. Doing it twice changes nothing more. Of the
router's files it touches none, but for the configuration that --router-config
names: there the commands of the modules that --wrap names begin with
"scopeward exec", and a backup stays beside it until uninstall restores it.

A router that is a system service has scopeward.service beside it. A router that
USER runs has scopeward@USER.service, with --instance USER: its configuration is
/etc/scopeward/USER.jsonc, and each user has one.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := absoluteRoot(in.Root); err != nil {
				return err
			}
			if f := c.Flags(); in.Instance != "" && (f.Changed("user") || f.Changed("router-unit")) {
				return usageError{errors.New("--instance is for a router that is no system service: leave --user and --router-unit out")}
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if in.Program, err = filepath.EvalSymlinks(self); err != nil {
				return err
			}
			plan, err := install.New(in)
			if wrong := (*install.ParamsError)(nil); errors.As(err, &wrong) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return carryOut(c.OutOrStdout(), plan, dryRun)
		},
	}
	f := c.Flags()
	rootFlag(c, &in.Root, &dryRun)
	f.StringVar(&in.User, "user", "subc", "the `USER` that the router runs as")
	f.StringVar(&in.RouterUnit, "router-unit", "subc.service", "the router's `UNIT`")
	f.StringVar(&in.Instance, "instance", "", "the `USER` whose own router it is; for a system service leave it out")
	f.StringVar(&in.RouterConfig, "router-config", "", "the router's configuration `FILE`, as it is called inside the root")
	f.StringSliceVar(&in.Wrap, "wrap", nil, "`MODULE`s of the router's configuration to put behind scopeward, separated by commas")
	return c
}

// rootFlag gives c the flags that installing and removing share.
func rootFlag(c *cobra.Command, root *string, dryRun *bool) {
	c.Flags().StringVar(root, "root", "/", "the `FOLDER` that is taken for /")
	c.Flags().BoolVar(dryRun, "dry-run", false, "show the plan and change nothing")
}

func absoluteRoot(root string) error {
	if !filepath.IsAbs(root) {
		return usageError{fmt.Errorf("--root %q is not absolute: give the whole path", root)}
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--root %q is no folder: name one that is there", root)}
	}
	return nil
}

// carryOut shows a plan, and follows it unless it is a dry run.
func carryOut(out io.Writer, plan *install.Plan, dryRun bool) error {
	s := newSheet(out)
	for _, step := range plan.Steps {
		s.row(step.Action, step.Path, step.Why)
	}
	if err := s.flush(); err != nil {
		return err
	}
	if !plan.Changes() {
		_, err := fmt.Fprintln(out, "nothing to do")
		return err
	}
	if dryRun {
		_, err := fmt.Fprintln(out, "a dry run: nothing was changed")
		return err
	}
	if err := plan.Apply(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "done; what remains:\n  %s\n", strings.Join(plan.Next, "\n  "))
	return err
}
