package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"scopeward/sidecar/operator/api"
)

// watchEvery is how often --watch looks again unless it is told otherwise.
const watchEvery = time.Second

// reading is a command that asks the sidecar for one document and shows it.
type reading[T any] struct {
	ask  func(context.Context, *api.Client) (T, error)
	show func(*sheet, T)
	// changes are the kinds of events that --watch looks again for at once, beside
	// its interval; nil for none.
	changes []string
	// verdict is an error when the answer is a no; nil for answers that are none.
	verdict func(T) error

	reach reach
	json  bool
	watch time.Duration
}

// bind gives c the flags of a reading command and makes it one.
func (r *reading[T]) bind(c *cobra.Command) *cobra.Command {
	r.reach.flags(c)
	c.Flags().BoolVar(&r.json, "json", false, "print the answer as the operator API gives it, one line of JSON")
	c.Flags().DurationVar(&r.watch, "watch", 0, "show it again every `INTERVAL`, 1s when none is given")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery.String()
	c.RunE = func(c *cobra.Command, _ []string) error { return r.run(c) }
	return c
}

func (r *reading[T]) run(c *cobra.Command) error {
	if c.Flags().Changed("watch") && r.watch <= 0 {
		return usageError{fmt.Errorf("--watch is no interval: give one such as 1s")}
	}
	client, err := r.reach.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, out := c.Context(), c.OutOrStdout()
	changed, err := r.follow(ctx, client)
	if err != nil {
		return r.ended(ctx, err)
	}
	defer changed.Close()
	for {
		answer, err := r.ask(ctx, client)
		if err != nil {
			return r.ended(ctx, err)
		}
		if err := r.print(out, answer); err != nil {
			return err
		}
		if r.watch == 0 {
			if r.verdict != nil {
				return r.verdict(answer)
			}
			return nil
		}
		select {
		case <-time.After(r.watch):
		case <-changed.told:
		case <-ctx.Done():
			return nil
		}
	}
}

// changes is an event stream of which only the coming of events counts.
type changes struct {
	stream *api.Stream
	told   chan struct{} // holds one
	done   chan struct{}
}

// follow follows what --watch looks again for. Whoever looks after it has begun
// misses nothing.
func (r *reading[T]) follow(ctx context.Context, client *api.Client) (*changes, error) {
	f := &changes{}
	if r.watch == 0 || r.changes == nil {
		return f, nil
	}
	var err error
	if f.stream, err = client.Events(ctx, r.changes...); err != nil {
		return nil, err
	}
	f.told, f.done = make(chan struct{}, 1), make(chan struct{})
	go f.run()
	return f, nil
}

// run ends with the stream: from then on the interval alone counts.
func (f *changes) run() {
	defer close(f.done)
	for {
		if _, err := f.stream.Next(); err != nil {
			return
		}
		select {
		case f.told <- struct{}{}:
		default:
		}
	}
}

// Close ends it and waits for its goroutine.
func (f *changes) Close() {
	if f.stream != nil {
		f.stream.Close()
		<-f.done
	}
}

// ended makes an interrupt the good end of a watch.
func (r *reading[T]) ended(ctx context.Context, err error) error {
	if r.watch > 0 && ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *reading[T]) print(out io.Writer, answer T) error {
	if r.json {
		return printJSON(out, answer)
	}
	if r.watch > 0 && isTerminal(out) {
		io.WriteString(out, "\x1b[H\x1b[2J") // the top of an empty screen
	}
	s := newSheet(out)
	r.show(s, answer)
	return s.flush()
}

// printJSON prints v on one line.
func printJSON(out io.Writer, v any) error {
	line, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
