package scopewatch_test

import (
	"fmt"
	"runtime"
)

// audience is the [routertest.TB] of a story that is no test: what fails is
// printed, which is not what the story should print.
type audience struct{ cleanups []func() }

func (a *audience) Helper() {}

func (a *audience) Fatalf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	runtime.Goexit()
}

func (a *audience) Cleanup(f func()) { a.cleanups = append(a.cleanups, f) }

func (a *audience) leave() {
	for i := len(a.cleanups) - 1; i >= 0; i-- {
		a.cleanups[i]()
	}
}
