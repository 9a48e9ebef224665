package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"scopeward/sidecar/ledger"
	"scopeward/table"
)

// ledgerFile is which ledger a command is about, and how it answers.
type ledgerFile struct {
	reach reach
	path  string
	json  bool
}

func newLedger() *cobra.Command {
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Read and keep the durable log of what scopes were given",
		Long: "Read and keep the durable log of what scopes were given.\n\n" +
			"What reads opens the file, or asks the sidecar that has it in use for a copy. What writes needs a sidecar that is stopped.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLedgerImport(), newLedgerVerify(), newLedgerShow(), newLedgerProve(), newLedgerCompact())
	return c
}

func (l *ledgerFile) flags(c *cobra.Command) *cobra.Command {
	l.reach.flags(c)
	c.Flags().StringVar(&l.path, "ledger", "", "the ledger's `FILE`; ledger.path of the configuration when it is not given")
	c.Flags().BoolVar(&l.json, "json", false, "print JSON, one object a line")
	return c
}

// find is the path of the ledger.
func (l *ledgerFile) find(c *cobra.Command) (string, error) {
	if l.path != "" {
		return l.path, nil
	}
	cfg, err := l.reach.load(c, "the ledger with --ledger")
	if err != nil {
		return "", err
	}
	if cfg.Ledger.Path == "" {
		return "", usageError{fmt.Errorf("%s keeps no ledger: name one with --ledger", l.reach.config)}
	}
	return cfg.Ledger.Path, nil
}

// view opens the ledger to be read.
func (l *ledgerFile) view(c *cobra.Command, read func(*ledger.View) error) error {
	path, err := l.find(c)
	if err != nil {
		return err
	}
	v, err := ledger.OpenView(path)
	if errors.Is(err, ledger.ErrInUse) && (l.path == "" || l.reach.socket != "") {
		return l.copied(c, err, read)
	}
	switch {
	case errors.Is(err, ledger.ErrInUse):
		return fmt.Errorf("%w: name the sidecar that has it with --socket, too, and read a copy", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: read it as the user that the sidecar runs as, or as root", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(read(v), v.Close())
}

// copied reads a copy from the sidecar that has the file in use: the one of the
// configuration, or of --socket. A file that is named alone could be any other's.
func (l *ledgerFile) copied(c *cobra.Command, inUse error, read func(*ledger.View) error) error {
	client, err := l.reach.client(c)
	if err != nil {
		return inUse
	}
	defer client.Close()
	f, err := os.CreateTemp("", "scopeward-ledger-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(client.Ledger(c.Context(), f), f.Close()); err != nil {
		return err
	}
	v, err := ledger.OpenView(f.Name())
	if err != nil {
		return err
	}
	return errors.Join(read(v), v.Close())
}

func newLedgerImport() *cobra.Command {
	l := &ledgerFile{}
	return l.flags(&cobra.Command{
		Use:   "import FILE",
		Short: "Append entries that were written elsewhere, JSON lines as show --json prints them; - is standard input",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := l.find(c)
			if err != nil {
				return err
			}
			in := io.NopCloser(c.InOrStdin())
			if args[0] != "-" {
				if in, err = os.Open(args[0]); err != nil {
					return err
				}
			}
			defer in.Close()
			r, err := ledger.Import(path, in, time.Now().UnixMilli())
			if err != nil {
				return err
			}
			if l.json {
				return printJSON(c.OutOrStdout(), r)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d entries imported, %d of them ends; %d were hashed unsorted, %d have a hash that is not of their record; the head is %d\n",
				r.Entries, r.Ends, r.Unsorted, r.Changed, r.Head)
			return err
		},
	})
}

func newLedgerVerify() *cobra.Command {
	l := &ledgerFile{}
	return l.flags(&cobra.Command{
		Use:   "verify",
		Short: "Check the chain and every digest",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return l.view(c, func(v *ledger.View) error {
				r, err := v.Verify()
				if err != nil {
					return err
				}
				if l.json {
					err = printJSON(c.OutOrStdout(), r)
				} else {
					err = showReport(c.OutOrStdout(), r)
				}
				return errors.Join(err, sound(r))
			})
		},
	})
}

func showReport(w io.Writer, r *ledger.Report) error {
	for _, p := range r.Listed {
		if _, err := fmt.Fprintf(w, "entry %d %s\n", p.Number, p.What); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d entries from %d to the head %d: %d contents, %d ends, %d compacted; imported: %d unsorted, %d changed; %d problems\nprefix %s\n",
		r.Entries, r.First, r.Head, r.Contents, r.Ends, r.Compacted, r.Unsorted, r.Changed, r.Problems, r.Prefix)
	return err
}

// sound is the verdict of a verification.
func sound(r *ledger.Report) error {
	if r.Sound() {
		return nil
	}
	return noError{fmt.Errorf("the ledger does not verify: %d problems", r.Problems)}
}

func newLedgerShow() *cobra.Command {
	l := &ledgerFile{}
	return l.flags(&cobra.Command{
		Use:   "show [OWNER [REF]]",
		Short: "Print the entries, or those of one owner or one scope",
		Args:  cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			wanted := func(e *ledger.Entry) bool { return true }
			if len(args) > 0 {
				owner := ledger.ParseOwner(args[0])
				wanted = func(e *ledger.Entry) bool {
					return e.ID.Owner == owner && (len(args) < 2 || e.ID.Ref == args[1])
				}
			}
			return l.view(c, func(v *ledger.View) error {
				return v.Entries(func(e *ledger.Entry) error {
					if !wanted(e) {
						return nil
					}
					return l.entry(c.OutOrStdout(), e)
				})
			})
		},
	})
}

func (l *ledgerFile) entry(w io.Writer, e *ledger.Entry) error {
	if l.json {
		_, err := w.Write(append(e.AppendJSON(nil), '\n'))
		return err
	}
	reason := e.Reason.String()
	if e.Ended() {
		reason += " (" + e.Cause.String() + ")"
	}
	if o := e.Origin; o != nil {
		reason += fmt.Sprintf(" (%d %s %s)", o.Number, utc(o.CreatedAt), o.Reason)
	}
	what := " record " + ascii(string(e.Record))
	switch {
	case e.Ended():
		what = ""
	case e.Compacted():
		what = " record compacted"
	}
	_, err := fmt.Fprintf(w, "%d %s %s %s record_sha256 %s prefix_sha256 %s%s\n",
		e.Number, utc(e.CreatedAt), reason, e.ID, e.RecordSHA256, e.PrefixSHA256, what)
	return err
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// ascii is JSON text whose strings can't play with the terminal.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

func newLedgerProve() *cobra.Command {
	l := &ledgerFile{}
	return l.flags(&cobra.Command{
		Use:   "prove OWNER REF EPOCH",
		Short: "Print what one session was granted and when, and check the chain that says so",
		Args:  cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			epoch, err := strconv.ParseUint(args[2], 10, 64)
			if err != nil {
				return usageError{errors.New("EPOCH is no number")}
			}
			id := table.ScopeID{Key: table.Key{Owner: ledger.ParseOwner(args[0]), Ref: args[1]}, Epoch: epoch}
			return l.view(c, func(v *ledger.View) error {
				p, err := v.Prove(id)
				if err != nil {
					return err
				}
				if err := l.proof(c.OutOrStdout(), p); err != nil {
					return err
				}
				if len(p.Steps) == 0 {
					return noError{fmt.Errorf("the ledger knows nothing of %s", id)}
				}
				return sound(p.Report)
			})
		},
	})
}

func (l *ledgerFile) proof(w io.Writer, p *ledger.Proof) error {
	if l.json {
		return printJSON(w, p)
	}
	for _, s := range p.Steps {
		if err := l.entry(w, &s.Entry); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "  follows prefix %s\n", s.Previous); err != nil {
			return err
		}
	}
	return showReport(w, p.Report)
}

func newLedgerCompact() *cobra.Command {
	l := &ledgerFile{}
	var keep time.Duration
	c := &cobra.Command{
		Use:   "compact",
		Short: "Take what no longer says what is granted; the chain stays verifiable",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := l.find(c)
			if err != nil {
				return err
			}
			if keep < 0 {
				return usageError{errors.New("--keep is no length of time")}
			}
			r, err := ledger.Compact(path, time.Now().Add(-keep).UnixMilli())
			if err != nil {
				return err
			}
			if l.json {
				return printJSON(c.OutOrStdout(), r)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d entries and %d records taken, %d bytes less; the head is still %d, prefix %s\n",
				r.Entries, r.Records, r.Bytes, r.Head, r.Prefix)
			return err
		},
	}
	c.Flags().DurationVar(&keep, "keep", 0, "leave entries that are younger than this `TIME`, such as 720h")
	return l.flags(c)
}
