package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// verdict is what became of a mutant.
type verdict string

const (
	killed     verdict = "killed"
	survived   verdict = "SURVIVED"
	timedOut   verdict = "TIMED OUT"
	broken     verdict = "NO BUILD"
	otherwise  verdict = "OTHER TEST"
	unrunnable verdict = "CANNOT RUN"
)

type runner struct {
	scratch string
	limit   time.Duration
}

// one applies a mutant and runs its test.
func (r *runner) one(ctx context.Context, m mutant) (verdict, string) {
	overlay, err := r.overlay(m)
	if err != nil {
		return unrunnable, err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	res, err := goTest(ctx, m.in, pattern(m.test), "-overlay", overlay)
	switch {
	case ctx.Err() != nil || strings.Contains(res.output, "panic: test timed out"):
		return timedOut, res.output
	case res.noBuild:
		return broken, res.output
	case slices.Contains(res.failed, m.test):
		return killed, res.output
	case err == nil && slices.Contains(res.passed, m.test):
		return survived, res.output
	}
	return otherwise, res.output
}

// baseline wants every named test to be there and to pass without a mutation.
func (r *runner) baseline(ctx context.Context, mutants []mutant) error {
	tests := map[string][]string{}
	for _, m := range mutants {
		if !slices.Contains(tests[m.in], m.test) {
			tests[m.in] = append(tests[m.in], m.test)
		}
	}
	for in, names := range tests {
		var tops []string
		for _, name := range names {
			top, _, _ := strings.Cut(name, "/")
			if !slices.Contains(tops, top) {
				tops = append(tops, top)
			}
		}
		res, err := goTest(ctx, in, "^("+strings.Join(tops, "|")+")$")
		if err != nil {
			return fmt.Errorf("%s fails without any mutation:\n%s", in, res.output)
		}
		for _, name := range names {
			if !slices.Contains(res.passed, name) {
				return fmt.Errorf("%s has no test %s that passes", in, name)
			}
		}
	}
	return nil
}

// overlay writes the changed file and the map that puts it in the other's place.
func (r *runner) overlay(m mutant) (string, error) {
	source, err := m.source()
	if err != nil {
		return "", err
	}
	target, err := filepath.Abs(filepath.Join(m.dir, m.file))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(r.scratch, "")
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, source, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {target: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, replace, 0o600)
}

// pattern matches a test and nothing else.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// results are what a run of go test told.
type results struct {
	passed, failed []string
	noBuild        bool
	output         string
}

// event is a line of go test -json.
type event struct {
	Action string
	Test   string
	Output string
}

func goTest(ctx context.Context, in, run string, args ...string) (results, error) {
	args = append([]string{"test", "-json", "-count=1", "-vet=off", "-gcflags=-N -l", "-short", "-timeout=60s", "-run", run}, args...)
	args = append(args, "./"+filepath.ToSlash(in))
	if usesRapid(in) {
		args = append(args, "-rapid.nofailfile") // it would leave one in the tree
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.WaitDelay = 5 * time.Second
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	err := cmd.Run()
	var res results
	var text strings.Builder
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			text.WriteString(lines.Text() + "\n")
			continue
		}
		text.WriteString(e.Output)
		switch e.Action {
		case "pass":
			res.passed = append(res.passed, e.Test)
		case "fail":
			res.failed = append(res.failed, e.Test)
		case "build-fail":
			res.noBuild = true
		}
	}
	res.output = cut(text.String()+diagnostics.String(), 6_000)
	return res, errors.Join(err, lines.Err())
}

// usesRapid says whether a package's tests know rapid's flags.
func usesRapid(in string) bool {
	paths, _ := filepath.Glob(filepath.Join(in, "*_test.go"))
	return slices.ContainsFunc(paths, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
}

// cut keeps the end of a text, where a test says why it failed.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "..." + s[len(s)-n:]
}
