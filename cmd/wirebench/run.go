package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"
)

// threads is how many threads of this process may run Go code at once. Each
// connection's thread sits in a system call most of the time and keeps its
// place only while there are more places than threads.
const threads = 64

// heapLimit is where this process collects garbage after all, in bytes. Below
// it garbage is collected between measurements only.
const heapLimit = 2 << 30

// measureAll runs what o asks for and prints it. A run that ends early prints
// what it has.
func measureAll(ctx context.Context, o options) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.effort.Limit)
	defer cancel()
	runtime.GOMAXPROCS(threads)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(heapLimit)
	if err := allowDescriptors(); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "wirebench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if slices.Contains(o.worlds, worldOurs) && o.binaries.scopeward == "" {
		if o.binaries.scopeward, err = buildScopeward(ctx, scratch); err != nil {
			return err
		}
	}
	if o.binaries, err = o.binaries.absolute(); err != nil {
		return err
	}
	b := &bench{
		effort: o.effort, phases: selected(phases(), o.wants, o.worlds), worlds: o.worlds,
		binaries: o.binaries, scratch: scratch, progress: os.Stderr,
		sheet: newSheet(o.effort.Rounds), versions: make(map[string]string),
	}
	b.run(ctx)
	f := machineFacts(o.effort)
	f.Took = time.Since(started).Round(time.Second).String()
	f.Versions, f.Rounds = o.binaries.versions(b.versions), b.sheet.whole
	if err := show(o, f, b.sheet); err != nil {
		return err
	}
	if b.sheet.missing > 0 || ctx.Err() != nil {
		return errFailed
	}
	return nil
}

// show writes the table, and the report where it was asked for.
func show(o options, f facts, s *sheet) error {
	rows := slices.DeleteFunc(metrics(), func(m metric) bool { return !o.wants(m.id) })
	if o.json != "" {
		text, err := newReport(f, s, rows).render()
		if err != nil {
			return err
		}
		if o.json == "-" {
			_, err := os.Stdout.Write(text)
			return err
		}
		if err := os.WriteFile(o.json, text, 0o644); err != nil {
			return err
		}
	}
	if err := f.write(os.Stdout); err != nil {
		return err
	}
	return writeTable(os.Stdout, s, rows, o.worlds)
}

// allowDescriptors raises the limit of open files for the children too. The
// runtime raises it for this process only, unless it is told so.
func allowDescriptors() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	return nil
}
