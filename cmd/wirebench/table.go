package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// writeTable prints the medians of each world, our same-round ratio to the
// world that the goal names with its range, the goal, and whether it is met. It
// is Markdown that also reads well as it stands.
func writeTable(out io.Writer, s *sheet, rows []metric, worlds []string) error {
	lines := [][]string{slices.Concat([]string{"metric"}, worlds, []string{"ratio (range)", "goal", ""})}
	for _, m := range rows {
		line := []string{m.title + ", " + m.unit}
		for _, w := range worlds {
			line = append(line, figure(median(s.of(m.id, w)), m.unit))
		}
		judged := s.judged(m)
		line = append(line, span(m, judged), m.goal.text(m.unit), verdict(m, median(judged)))
		lines = append(lines, line)
	}
	return writeMarkdown(out, lines)
}

// span is the median of same-round ratios with the lowest and the highest.
func span(m metric, judged []float64) string {
	v := present(judged)
	if m.goal.base == "" || len(v) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(v), slices.Min(v), slices.Max(v))
}

func verdict(m metric, value float64) string {
	switch {
	case m.goal.none():
		return ""
	case math.IsNaN(value):
		return "not measured"
	case m.goal.met(value):
		return "met"
	}
	return "missed"
}

// figure prints a value to three digits, from 100 to the unit with thousands
// apart. The unit "x" is a ratio's, which has two decimals.
func figure(v float64, unit string) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case unit == "x":
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.3g", v)
	case math.Abs(v) < 100:
		return fmt.Sprintf("%.1f", v)
	}
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func writeMarkdown(out io.Writer, lines [][]string) error {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for i, line := range lines {
		for j, cell := range line {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			for _, w := range widths {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
