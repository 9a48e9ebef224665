package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// row is one row or bullet of the contract whose rule a mutant removes.
type row struct {
	id   string
	text string
	owed string // who owes its mutant, or a part of it; "" for nobody
	have int    // mutants that stand for it
}

// rows are the rows by id.
type rows map[string]*row

// readRows reads a list of rows, one a line: id | text, or id | text | owed.
func readRows(path string) (rows, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := rows{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) < 2 || len(fields) > 3 || list[fields[0]] != nil {
			return nil, fmt.Errorf("%s:%d: not a new row: %s", path, n, line)
		}
		r := &row{id: fields[0], text: fields[1]}
		if len(fields) == 3 {
			r.owed = fields[2]
		}
		list[r.id] = r
	}
	return list, lines.Err()
}

// cover counts the mutants of each row. It fails on a mutant for no known row and
// on a row without a mutant that nobody owes.
func (l rows) cover(mutants []mutant) error {
	for _, m := range mutants {
		for _, id := range m.rows {
			if l[id] == nil {
				return fmt.Errorf("%s: no such row: %s", m.at, id)
			}
			l[id].have++
		}
	}
	var bare []string
	for _, id := range slices.Sorted(maps.Keys(l)) {
		if r := l[id]; r.have == 0 && r.owed == "" {
			bare = append(bare, r.id+" "+r.text)
		}
	}
	if len(bare) > 0 {
		return fmt.Errorf("rows without a mutant that nobody owes:\n%s", strings.Join(bare, "\n"))
	}
	return nil
}

// report prints what is owed still.
func (l rows) report() {
	covered := 0
	for _, id := range slices.Sorted(maps.Keys(l)) {
		r := l[id]
		if r.have > 0 {
			covered++
		}
		if r.owed != "" {
			fmt.Printf("owed by %s: %s %s\n", r.owed, r.id, r.text)
		}
	}
	fmt.Printf("%d rows, %d with a mutant\n", len(l), covered)
}
