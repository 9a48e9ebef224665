package admission

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forbidden is what the pure core never imports, and why.
var forbidden = map[string]string{
	"net":                    "a decision has no socket",
	"os":                     "a decision has no file, environment or process",
	"syscall":                "the same by another name",
	"io/fs":                  "a decision reads nothing",
	"time":                   "now is an argument, Unix milliseconds, or tests of the contract's deadlines prove nothing",
	"context":                "nothing here waits",
	"log":                    "a decision is returned; whoever records it logs it",
	"math/rand":              "one ask has one decision",
	"encoding/json":          "it takes repeated members and other cases of a name",
	"go.uber.org/zap":        "as log",
	"go.uber.org/fx":         "the core is built without a container",
	"github.com/cilium/ebpf": "attribution is an input",
	"golang.org/x/sys":       "as syscall",
	"scopeward/proxy":        "imports go one way: proxy, admission, table",
	"scopeward/sidecar":      "as proxy",
	"scopeward/bpf":          "as proxy",
	"scopeward/cmd":          "as proxy",
	"scopeward/proxy/wire":   "as proxy: a decision knows no frame",
	"scopeward/deploy":       "as proxy",
}

func TestThePureCoreImportsNothingForbidden(t *testing.T) {
	for _, dir := range []string{".", "../table"} {
		for file, imports := range importsOf(t, dir) {
			for _, path := range imports {
				for banned, why := range forbidden {
					if path == banned || strings.HasPrefix(path, banned+"/") {
						t.Errorf("%s imports %s: %s", file, path, why)
					}
				}
				if dir == "../table" {
					require.NotEqual(t, "scopeward/admission", path, file)
				}
			}
		}
	}
}

// importsOf is what the Go files of dir import, tests left out.
func importsOf(t *testing.T, dir string) map[string][]string {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	imports := map[string][]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		require.NoError(t, err)
		imports[name] = []string{}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			imports[name] = append(imports[name], path)
		}
	}
	require.NotEmpty(t, imports, dir)
	return imports
}
