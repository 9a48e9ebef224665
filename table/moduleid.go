package table

import "strings"

// ModuleID names a module of the router. It is a string of its own so that a
// set of targets is a [Set].
type ModuleID string

// Compare orders module ids by their bytes.
func (m ModuleID) Compare(n ModuleID) int { return strings.Compare(string(m), string(n)) }

func (m ModuleID) appendJSON(b []byte) []byte { return appendString(b, string(m)) }
