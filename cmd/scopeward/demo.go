package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"scopeward/sidecar/demo"
)

func newDemo() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play one scope's story on a stub router, in this process",
		Long: "Play one scope's story on a stub router, in this process: a sync, an admitted\n" +
			"call with its stamp, a refusal, a revocation that closes a live route. Exits 0\n" +
			"only if every step went as told.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var steps []demo.Step
			out := c.OutOrStdout()
			paint := painter(out)
			err := demo.Run(c.Context(), func(s demo.Step) {
				steps = append(steps, s)
				if !asJSON {
					printStep(out, paint, len(steps), s)
				}
			})
			if asJSON {
				if failed := json.MarshalWrite(out, told{OK: err == nil, Steps: steps}); failed != nil {
					return failed
				}
			}
			if err != nil || asJSON {
				return err
			}
			return printSteps(out, steps)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the steps as one JSON object")
	return c
}

// told is the demo for machines.
type told struct {
	OK    bool        `json:"ok"`
	Steps []demo.Step `json:"steps"`
}

// painter returns what colours a text on a terminal, and leaves it as it is
// elsewhere.
func painter(out io.Writer) func(code int, text string) string {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("NO_COLOR") != "" {
		return func(_ int, text string) string { return text }
	}
	return func(code int, text string) string { return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, text) }
}

const (
	green  = 32
	yellow = 33
	cyan   = 36
	dim    = 2
)

func printStep(out io.Writer, paint func(int, string) string, n int, s demo.Step) {
	fmt.Fprintf(out, "%2d  %s  %s\n", n, paint(cyan, s.Who), s.What)
	colour := green
	if s.Code != "" {
		colour = yellow
		fmt.Fprintf(out, "    %s  %s\n", paint(colour, s.Code), s.Result)
	} else {
		fmt.Fprintf(out, "    %s\n", paint(colour, s.Result))
	}
	if s.Detail != "" {
		fmt.Fprintf(out, "    %s\n", paint(dim, s.Detail))
	}
}

func printSteps(out io.Writer, steps []demo.Step) error {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tWHO\tWHAT\tCODE\tAS TOLD")
	for i, s := range steps {
		code := s.Code
		if code == "" {
			code = "–"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\tyes\n", i+1, s.Who, s.What, code)
	}
	return w.Flush()
}
