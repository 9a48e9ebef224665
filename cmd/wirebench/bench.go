package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// bench is one run.
type bench struct {
	effort   effort
	phases   []phase
	worlds   []string
	binaries binaries
	scratch  string
	progress io.Writer
	sheet    *sheet
	versions map[string]string

	mu   sync.Mutex
	live []*world // for the end of the time
}

// run runs all rounds, or as many as ctx allows: its end kills the worlds, so
// that whatever waits returns. What failed is in the sheet.
func (b *bench) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, b.kill)
	defer stop()
	for round := range b.effort.Rounds {
		from := time.Now()
		for _, p := range b.phases {
			if ctx.Err() != nil {
				fmt.Fprintf(b.progress, "out of time in round %d\n", round+1)
				return
			}
			b.phase(ctx, round, p)
		}
		b.sheet.whole++
		fmt.Fprintf(b.progress, "round %d of %d took %.1f s\n", round+1, b.effort.Rounds, time.Since(from).Seconds())
	}
}

// phase starts worlds, takes every step in each, and ends them. A world that
// fails to start is left out, one that fails a step twice goes on with the next.
func (b *bench) phase(ctx context.Context, round int, p phase) {
	worlds := b.start(ctx, round, p)
	defer b.end(worlds)
	for i, s := range p.steps {
		for _, name := range turned(common(s.in, b.worlds), round+i) {
			w := worlds[name]
			if w == nil || ctx.Err() != nil {
				continue
			}
			b.take(ctx, round, s, w)
		}
	}
}

// take takes a step in one world, and once more when that fails: a router may
// cut a connection whose writer it thinks behind. Both failures are kept.
func (b *bench) take(ctx context.Context, round int, s step, w *world) {
	for range 2 {
		runtime.GC()
		v, err := onThread(func() (values, error) { return s.run(w, b.effort) })
		if err == nil {
			b.sheet.put(round, w.name, v)
			return
		}
		if ctx.Err() != nil {
			return
		}
		b.sheet.fail(round, w.name, s.fills[0], err)
		fmt.Fprintf(b.progress, "round %d, %s, %s: %v\n", round+1, w.name, s.fills[0], err)
	}
	b.sheet.missing++
}

func (b *bench) start(ctx context.Context, round int, p phase) map[string]*world {
	worlds := make(map[string]*world)
	for _, name := range p.worlds(b.worlds) {
		if ctx.Err() != nil {
			break
		}
		w, err := startWorld(name, b.scratch, b.binaries)
		if err != nil {
			b.sheet.fail(round, name, "start", err)
			b.sheet.missing++
			fmt.Fprintf(b.progress, "round %d, %v\n", round+1, err)
			continue
		}
		worlds[name] = w
		b.versions[name] = w.front.DaemonVer
		b.mu.Lock()
		b.live = append(b.live, w)
		b.mu.Unlock()
	}
	return worlds
}

func (b *bench) end(worlds map[string]*world) {
	b.mu.Lock()
	b.live = nil
	b.mu.Unlock()
	for _, w := range worlds {
		if err := w.stop(); err != nil {
			fmt.Fprintf(b.progress, "stop world %s: %v\n", w.name, err)
		}
	}
}

func (b *bench) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.live {
		w.kill()
	}
}

// onThread runs f on a thread of its own, as the modules' sides have theirs.
func onThread(f func() (values, error)) (values, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}

// turned starts the list at another place each time, and walks it backwards
// every other time.
func turned(list []string, n int) []string {
	out := make([]string, 0, len(list))
	for i := range list {
		k := n + i
		if n%2 == 1 {
			k = n - i + len(list)
		}
		out = append(out, list[k%len(list)])
	}
	return out
}
