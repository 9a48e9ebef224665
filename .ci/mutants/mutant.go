package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one small change of one file.
type mutant struct {
	rows []string // of the contract that it stands for
	dir  string   // of the package whose list it is in
	in   string   // the folder of the package that is tested
	test string   // that must fail, a subtest after each slash
	file string   // of dir
	old  string   // occurs once in the file
	new  string
	at   string // list and line, for messages
}

func (m mutant) String() string {
	return fmt.Sprintf("%s %s %s %s", strings.Join(m.rows, " "), m.in, m.test, m.file)
}

func (m mutant) patch() string {
	prefix := func(sign, text string) string { return sign + strings.ReplaceAll(text, "\n", "\n"+sign) }
	return fmt.Sprintf("%s %s\n%s\n%s", m.at, filepath.Join(m.dir, m.file), prefix("-", m.old), prefix("+", m.new))
}

// source is the file with the change.
func (m mutant) source() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(m.dir, m.file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.at, err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return nil, fmt.Errorf("%s: the old text is %d times in %s, and must be once:\n%s", m.at, n, m.file, m.patch())
	}
	return []byte(strings.Replace(string(text), m.old, m.new, 1)), nil
}

// readLists reads every list that the patterns find. A list is blocks with an
// empty line between them:
//
//	# why, any number of lines
//	row ROW...
//	test TEST/SUBTEST
//	in FOLDER          (only where another package tests it)
//	file FILE
//	-old text, one or more lines
//	+new text, none or more lines
//
// Only test and the texts must be in each block: row and file last until the next
// of their kind.
func readLists(patterns ...string) (mutants []mutant, err error) {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			list, err := readList(path)
			if err != nil {
				return nil, err
			}
			mutants = append(mutants, list...)
		}
	}
	return mutants, nil
}

func readList(path string) (mutants []mutant, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir := filepath.Dir(filepath.Dir(path))
	m := mutant{dir: dir, in: dir}
	var old, replacement []string
	finish := func() error {
		if m.test == "" && old == nil {
			return nil // a block of comments
		}
		m.old, m.new = strings.Join(old, "\n"), strings.Join(replacement, "\n")
		if len(m.rows) == 0 || m.test == "" || m.file == "" || m.old == "" || m.old == m.new {
			return fmt.Errorf("%s: a mutant needs a row, a test, a file, an old text and another new one", m.at)
		}
		mutants = append(mutants, m)
		old, replacement, m.test, m.at, m.in = nil, nil, "", "", dir
		return nil
	}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if m.at == "" {
			m.at = fmt.Sprintf("%s:%d", path, n)
		}
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
			if err := finish(); err != nil {
				return nil, err
			}
			m.at = ""
		case line[0] == '#':
		case line[0] == '-':
			old = append(old, line[1:])
		case line[0] == '+':
			replacement = append(replacement, line[1:])
		case word == "row":
			m.rows = strings.Fields(rest)
		case word == "test":
			m.test = rest
		case word == "in":
			m.in = filepath.Clean(rest)
		case word == "file":
			m.file = rest
		default:
			return nil, fmt.Errorf("%s:%d: neither a comment, row, test, in, file, - nor +: %s", path, n, line)
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return slices.Clip(mutants), lines.Err()
}
