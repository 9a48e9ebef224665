package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// judgeArgs makes every complaint about the arguments of c, or of a command below
// it, one about usage.
func judgeArgs(c *cobra.Command) {
	check := c.Args
	switch {
	case c.Name() == "help":
		check = knownCommand
	case check == nil && c.HasSubCommands():
		check = cobra.NoArgs
	}
	if !c.Runnable() {
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(c, args)
		switch takesNone := check(c, nil) == nil && check(c, []string{""}) != nil; {
		case err == nil:
			return nil
		case c.Name() == "help":
			return usageError{err}
		case takesNone:
			return usageError{unexpected(c, args[0])}
		}
		return usageError{fmt.Errorf("%w: usage: %s", err, c.UseLine())}
	}
	for _, sub := range c.Commands() {
		judgeArgs(sub)
	}
}

// unexpected complains about an argument of a command that takes none.
func unexpected(c *cobra.Command, arg string) error {
	hint := fmt.Sprintf("see %s --help", c.CommandPath())
	if c.HasSubCommands() {
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(arg); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return fmt.Errorf("unknown command %q: %s", arg, hint)
	}
	if _, err := time.ParseDuration(arg); err == nil && c.Flags().Lookup("watch") != nil {
		hint = "write --watch=" + arg
	}
	return fmt.Errorf("%q is not expected: %s", arg, hint)
}

// knownCommand lets help be asked for commands that there are.
func knownCommand(c *cobra.Command, args []string) error {
	if _, rest, err := c.Root().Find(args); err != nil || len(rest) > 0 {
		return fmt.Errorf("there is no command %q: see scopeward --help", strings.Join(args, " "))
	}
	return nil
}
