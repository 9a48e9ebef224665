// Command licences says under which licence each module is that the build, the
// tests or the tools use, and fails on one that is not allowed. It reads what
// lies in the module cache and asks nobody.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// licence is one that is allowed, known by phrases that only its text has.
type licence struct {
	name    string
	phrases []string
}

// allowed are in the order of the look: the first whose phrases are all there.
var allowed = []licence{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice shall be included"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "redistributions in binary form must reproduce"}},
	{"ISC", []string{"permission to use, copy, modify, and", "with or without fee is hereby granted"}},
}

// weak is a copyleft by file: allowed where nothing of it is handed on, in tests
// and tools.
var weak = licence{"MPL-2.0", []string{"mozilla public license version 2.0"}}

func main() {
	shipped, err := list("./cmd/scopeward")
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(2)
	}
	modules, err := list("-test", "./...", "tool")
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(2)
	}
	bad := 0
	for _, m := range modules {
		name, where := m.judge(), "tests, tools"
		fine := name == weak.name
		if slices.Contains(shipped, m) {
			where, fine = "program", false
		}
		fine = fine || slices.ContainsFunc(allowed, func(l licence) bool { return l.name == name })
		fmt.Printf("%-14s %-13s %s\n", name, where, m.path)
		if !fine {
			bad++
		}
	}
	fmt.Printf("%d modules, %d not allowed\n", len(modules), bad)
	if bad > 0 || len(modules) == 0 {
		os.Exit(1)
	}
}

// module is one that something of ours imports.
type module struct{ path, dir string }

// list is every module that has a package below what is asked for, sorted.
func list(what ...string) ([]module, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}`
	out, err := exec.Command("go", append([]string{"list", "-deps", "-f", format}, what...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr(err))
	}
	lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(out)), " ", "\x00"))
	slices.Sort(lines)
	var all []module
	for _, line := range slices.Compact(lines) {
		path, dir, _ := strings.Cut(line, "\x00")
		all = append(all, module{path, dir})
	}
	return all, nil
}

func stderr(err error) []byte {
	if e, ok := err.(*exec.ExitError); ok {
		return e.Stderr
	}
	return nil
}

// judge names the licence of the module, or says what is wrong.
func (m module) judge() string {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return "unreadable"
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
		if err != nil {
			return "unreadable"
		}
		if name := classify(text); name != "" {
			return name
		}
	}
	return "unknown"
}

// classify names the licence of a text, "" for one that is not allowed.
func classify(text []byte) string {
	plain := strings.Join(strings.Fields(string(bytes.ToLower(text))), " ")
	if strings.Contains(plain, "gnu general public license") && !strings.Contains(plain, "mozilla") || strings.Contains(plain, "business source") {
		return ""
	}
	for _, l := range append([]licence{weak}, allowed...) {
		if !slices.ContainsFunc(l.phrases, func(p string) bool { return !strings.Contains(plain, p) }) {
			return l.name
		}
	}
	return ""
}
