package main

import (
	"errors"

	"github.com/spf13/cobra"

	"scopeward/bpf"
)

// finding is one check of the host as --json prints it.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warn or fail
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitzero"`
}

func newDoctor() *cobra.Command {
	var asJSON, strict bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this host lets attribution prove, and what to do about the rest",
		Long: `Doctor looks at the host as this user and changes nothing. Run it as the user
and with the capabilities of the unit: it judges its own.

It exits 0 when the socket hooks can work, and 3 when a check fails: attribution
then falls back to /proc, or to nothing. With --strict a warning counts too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			found := diagnose(bpf.Probe())
			if asJSON {
				if err := printJSON(c.OutOrStdout(), map[string]any{"checks": found}); err != nil {
					return err
				}
				return prognosis(found, strict)
			}
			s := newSheet(c.OutOrStdout())
			s.row("CHECK", "STATE", "FOUND", "REMEDY")
			for _, f := range found {
				s.row(f.Check, f.State, f.Found, f.Remedy)
			}
			if err := s.flush(); err != nil {
				return err
			}
			return prognosis(found, strict)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the checks on one line of JSON")
	c.Flags().BoolVar(&strict, "strict", false, "take a warning for a failure")
	return c
}

func diagnose(checks []bpf.Check) []finding {
	found := make([]finding, 0, len(checks))
	for _, c := range checks {
		found = append(found, finding{c.Name, c.State.String(), c.Found, c.Remedy})
	}
	return found
}

// prognosis is the answer to whether the hooks can work.
func prognosis(found []finding, strict bool) error {
	warned := false
	for _, f := range found {
		switch f.State {
		case bpf.StateFail.String():
			return noError{errors.New("the socket hooks can't work here: " + f.Check + ": " + f.Remedy)}
		case bpf.StateWarn.String():
			warned = true
		}
	}
	if strict && warned {
		return noError{errors.New("attribution works, with warnings")}
	}
	return nil
}
