// Command mutants shows that removing a rule makes its test fail by name. It
// reads the lists of small source mutations that stand beside the tests
// (testdata/mutants.list of each package), applies each by go test -overlay, so
// that the tree is never touched, runs the one test that the list names, and
// fails when that test does not: the mutant survived, timed out, does not
// compile, or broke another test. It fails too on a row of rows.txt that has
// neither a mutant nor somebody who owes it.
//
//	go run ./.ci/mutants [-only REGEXP] [-j N] [-v]
//
// It runs in the repository's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "run the mutants whose row, test or file matches")
	parallel := flag.Int("j", 2, "how many at once")
	limit := flag.Duration("timeout", 4*time.Minute, "of one mutant, its compilation included")
	flag.Parse()
	filter, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	rows, err := readRows(filepath.Join(".ci", "mutants", "rows.txt"))
	if err != nil {
		return err
	}
	mutants, err := readLists("*/testdata/mutants.list", "*/*/testdata/mutants.list")
	if err != nil {
		return err
	}
	if err := rows.cover(mutants); err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range mutants {
		if filter.MatchString(m.String()) {
			chosen = append(chosen, m)
		}
	}
	scratch, err := os.MkdirTemp("", "scopeward-mutants.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := runner{scratch: scratch, limit: *limit}
	if err := r.baseline(context.Background(), chosen); err != nil {
		return err
	}
	failed := r.all(context.Background(), chosen, *parallel)
	rows.report()
	fmt.Printf("%d mutants, %d killed, %d not\n", len(chosen), len(chosen)-failed, failed)
	if failed > 0 || len(chosen) == 0 {
		return fmt.Errorf("%d mutants were not killed by the test that should", failed)
	}
	return nil
}

// draws is how often a mutant may survive before it counts as one that does.
const draws = 3

// all runs mutants, some at once, and counts those that were not killed.
func (r *runner) all(ctx context.Context, mutants []mutant, parallel int) (failed int) {
	var wait sync.WaitGroup
	var print sync.Mutex
	next := make(chan mutant)
	for range parallel {
		wait.Go(func() {
			for m := range next {
				began := time.Now()
				verdict, output := r.one(ctx, m)
				// A test that draws at random, or races, may miss a mutant once.
				for again := 1; verdict == survived && again < draws; again++ {
					verdict, output = r.one(ctx, m)
				}
				print.Lock()
				fmt.Printf("%-12s %5.1fs  %s\n", verdict, time.Since(began).Seconds(), m)
				if verdict != killed {
					failed++
					fmt.Printf("%s\n%s\n", m.patch(), output)
				}
				print.Unlock()
			}
		})
	}
	for _, m := range mutants {
		next <- m
	}
	close(next)
	wait.Wait()
	return failed
}
