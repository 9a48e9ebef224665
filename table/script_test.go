package table

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write what the golden scripts print into testdata")

// TestGoldenScripts runs testdata/*.txt. A script is a list of blocks, each a why
// in # comments, a command with its lines, ---- and what it prints.
func TestGoldenScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			s := &script{t: t, bed: newBed(t)}
			got := s.run(string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

type script struct {
	*bed
	t *testing.T
}

func (s *script) run(text string) string {
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		var why, command []string
		head, _, _ := strings.Cut(block, "\n----")
		for _, line := range strings.Split(head, "\n") {
			if strings.HasPrefix(line, "#") {
				why = append(why, line)
			} else {
				command = append(command, line)
			}
		}
		for _, line := range append(why, command...) {
			fmt.Fprintln(&out, line)
		}
		if len(command) > 0 {
			fmt.Fprintf(&out, "----\n%s", s.command(strings.Fields(command[0]), command[1:]))
		}
		fmt.Fprintln(&out)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// command runs one command. Arguments after the name are positional, or key=value.
func (s *script) command(words, lines []string) string {
	args := map[string]string{}
	var pos []string
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			args[k] = v
		} else {
			pos = append(pos, w)
		}
	}
	switch words[0] {
	case "limits":
		s.bed = newLimitedBed(s.t, Limits{LiveScopes: int(number(args["live"])), Tombstones: int(number(args["tombstones"]))})
		return "ok\n"
	case "clock":
		s.now = start + int64(number(pos[0]))
		return "ok\n"
	case "sync", "apply":
		return s.call(words[0], pos[0], args, s.times(lines))
	case "sweep":
		expired, drains := s.Sweep(s.now)
		return printExpired(expired) + printDrains(drains) + done(len(expired))
	case "reserve":
		id := s.reserveFor(orElse(args["opener"], pos[1]), pos[0], pos[1], pos[2], args["hold"] == "true")
		return fmt.Sprintf("route %d\n", id)
	case "commit":
		v := s.Commit(RouteID(number(pos[0])))
		return fmt.Sprintf("%s\n", orElse(string(v.Code()), map[Verdict]string{Committed: "committed", Gone: "gone"}[v]))
	case "release":
		return fmt.Sprintf("%t\n", s.Release(RouteID(number(pos[0]))))
	case "leave":
		return fmt.Sprintf("released %v\n", s.leave(strings.ReplaceAll(pos[0], "_", " ")))
	case "describe":
		return string(s.describe(pos[0]).AppendReply(nil, true)) + "\n"
	case "events":
		return s.printEvents(number(args["since"]))
	case "dump":
		return s.dump()
	}
	s.t.Fatalf("no such command: %s", words[0])
	return ""
}

// times makes expires=+N a deadline N ms after the bed's start.
func (s *script) times(lines []string) []string {
	for i, line := range lines {
		words := strings.Fields(line)
		for j, w := range words {
			if after, ok := strings.CutPrefix(w, "expires=+"); ok {
				words[j] = fmt.Sprintf("expires=%d", start+number(after))
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return lines
}

func (s *script) call(op, owner string, args map[string]string, lines []string) string {
	c := s.claim(owner)
	if from := args["from"]; from != "" {
		c.Peer = s.peer(from)
	}
	if launch := args["launch"]; launch != "" {
		c.Launch = Launch(number(launch))
	}
	c.Current = args["current"] != "false"
	generation := s.gens[owner] + 1
	if g := args["generation"]; g != "" {
		generation = number(g)
	}
	try := s.trySync
	if op == "apply" {
		try = s.tryApply
	}
	a, refused := try(c, generation, lines...)
	if refused != nil {
		return fmt.Sprintf("%s: %s\n", refused.Code, refused.Message)
	}
	s.gens[owner] = generation
	return printApplied(a)
}

func printApplied(a *Applied) string {
	var b strings.Builder
	for _, r := range a.Results {
		fmt.Fprintf(&b, "%s@%d %s", plainName(r.Ref), r.Epoch, r.Outcome)
		if r.Version != 0 {
			fmt.Fprintf(&b, " v%d", r.Version)
		}
		if r.ParentState != 0 {
			fmt.Fprintf(&b, " %s", r.ParentState)
		}
		if r.Outcome == Refused {
			fmt.Fprintf(&b, " %s: %s", r.Code, r.Message)
		}
		b.WriteByte('\n')
	}
	for _, r := range a.EndResults {
		outcome := map[bool]string{true: "ended", false: "not_live"}[r.Ended]
		fmt.Fprintf(&b, "end %s@%d %s\n", plainName(r.Ref), r.Epoch, outcome)
	}
	if len(a.Ended) > 0 {
		fmt.Fprintf(&b, "ended %s\n", strings.Join(endedRefs(a), " "))
	}
	b.WriteString(printExpired(a.Expired) + printDrains(a.Drains))
	return b.String() + done(b.Len())
}

func printExpired(expired []Expiry) string {
	var b strings.Builder
	for _, e := range expired {
		fmt.Fprintf(&b, "expired %s deadline=+%d routes=%d\n", e.ID, e.Deadline-start, e.Routes)
	}
	return b.String()
}

func printDrains(drains []Drain) string {
	var b strings.Builder
	for _, d := range drains {
		fmt.Fprintf(&b, "drain %d %s -> %s %s: %s\n", d.Route, d.Opener, d.Module, d.Scope, d.Reason)
	}
	return b.String()
}

func (s *script) printEvents(since uint64) string {
	events, ok := s.Events(since, make([]Event, 100))
	if !ok {
		oldest, newest := s.FeedBounds()
		return fmt.Sprintf("too old: %d to %d\n", oldest, newest)
	}
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s", e.Seq, e.Kind)
		if e.Kind == EventSynced {
			fmt.Fprintf(&b, " %s", e.Owner)
			for _, sc := range e.Scopes {
				fmt.Fprintf(&b, " %s@%d", plainName(sc.ID.Ref), sc.ID.Epoch)
			}
		} else {
			fmt.Fprintf(&b, " %s v%d", e.Scope.ID, e.Scope.Version)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func done(printed int) string {
	if printed == 0 {
		return "ok\n"
	}
	return ""
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
	return n
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
