package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"scopeward/sidecar/operator"
)

// sheet prints what a command reads: lines with a name before them, and tables
// whose columns are aligned.
type sheet struct {
	w   *tabwriter.Writer
	now time.Time
}

func newSheet(w io.Writer) *sheet {
	return &sheet{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), now: time.Now()}
}

// row prints cells under each other's columns. An empty one is a dash.
func (s *sheet) row(cells ...any) {
	for i, c := range cells {
		text := fmt.Sprint(c)
		if text == "" {
			text = "-"
		}
		if i > 0 {
			io.WriteString(s.w, "\t")
		}
		io.WriteString(s.w, strings.Map(visible, text))
	}
	io.WriteString(s.w, "\n")
}

// visible replaces what would move a terminal's cursor, or end a cell.
func visible(r rune) rune {
	if unicode.IsControl(r) || r == utf8.RuneError {
		return '?'
	}
	return r
}

// gap ends a table: what follows has columns of its own.
func (s *sheet) gap() {
	s.w.Flush()
	io.WriteString(s.w, "\n")
	s.w.Flush()
}

func (s *sheet) flush() error { return s.w.Flush() }

// ago says how long something has been so. 0 is never.
func (s *sheet) ago(ms int64) string {
	if ms == 0 {
		return ""
	}
	return span(s.now.Sub(time.UnixMilli(ms)))
}

// ahead says in how long a time comes. 0 is none.
func (s *sheet) ahead(ms uint64) string {
	if ms == 0 {
		return ""
	}
	d := time.UnixMilli(int64(ms)).Sub(s.now)
	if d < 0 {
		return "passed"
	}
	return span(d)
}

// span is a duration in two units at most.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// clock is a moment: of today without the day.
func (s *sheet) clock(ms int64) string {
	at, layout := time.UnixMilli(ms), "15:04:05.000"
	if at.Format(time.DateOnly) != s.now.Format(time.DateOnly) {
		layout = "2006-01-02 " + layout
	}
	return at.Format(layout)
}

// name shows a name that a caller chose: it can't play with the terminal.
func name(s string) string {
	if s == "" {
		return ""
	}
	return operator.Quote(s)
}

// names shows several, in the order given.
func names(list []string) string {
	shown := make([]string, len(list))
	for i, s := range list {
		shown[i] = name(s)
	}
	return strings.Join(shown, ",")
}

// session shows one session of a scope.
func session(owner, ref string, epoch uint64) string {
	return fmt.Sprintf("%s/%s@%d", name(owner), operator.Quote(ref), epoch)
}

// process shows a process, "" for one that is not attributed.
func process(pid int64, exe string) string {
	switch {
	case pid == 0:
		return ""
	case exe == "":
		return fmt.Sprint(pid)
	}
	return fmt.Sprintf("%d %s", pid, name(exe))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
