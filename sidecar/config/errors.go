package config

import (
	"fmt"
	"strings"
)

// Error is one complaint about the configuration, fit for an operator: it names
// the file, the place and the key, and ends with the remedy.
type Error struct {
	File   string // as given
	Line   int    // from 1; 0 when the complaint has no place in the file
	Column int    // bytes, from 1
	What   string // the complaint and its remedy
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, oneLine(e.What))
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, oneLine(e.What))
}

// oneLine keeps a name or a value from the file from making a second line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
