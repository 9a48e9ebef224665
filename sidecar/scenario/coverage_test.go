package scenario

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every file of the oracle has three of its scenarios here, a_smoke its only one,
// and no scenario is played twice.
func TestEveryFileOfTheOracleHasScenariosHere(t *testing.T) {
	stories := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)+(, [a-z0-9]+(_[a-z0-9]+)+)*\n`)
	seen := map[string]bool{}
	for _, of := range []string{
		"a_smoke", "s02_expiry", "s02_record", "s03_parents", "s03_sync", "s04_commit", "s04_idle", "s04_open", "s04_proof", "s04a_modes",
		"s05_describe", "s05_drains", "s06_restart", "s07_limits", "s08_wire", "s09_extra", "s10_pass", "s11_fuzz",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), of+"_test.go", nil, parser.ParseComments)
		require.NoError(t, err)
		tests := 0
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			require.Regexp(t, `^TestS\d+a?_`, fn.Name.Name, "a test is named by section and sentence")
			require.Regexp(t, stories, fn.Doc.Text(), "%s: its comment begins with the oracle's scenario", fn.Name.Name)
			for _, story := range strings.Split(strings.SplitN(fn.Doc.Text(), "\n", 2)[0], ", ") {
				require.False(t, seen[story], "%s is played twice", story)
				seen[story] = true
			}
			tests++
		}
		if of != "a_smoke" {
			require.GreaterOrEqual(t, tests, 3, of)
		}
	}
	require.GreaterOrEqual(t, len(seen), 60)
	files, err := filepath.Glob("s*_test.go")
	require.NoError(t, err)
	require.Len(t, files, 17+2, "a file of stories that is not counted: said and stage hold none")
}
