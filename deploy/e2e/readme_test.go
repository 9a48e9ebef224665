package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"scopeward/admission"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// TestReadme_RefusalCodes: the README's tables list every code of the contract
// that this program answers, and no other.
func TestReadme_RefusalCodes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Refusal codes\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")

	listed := map[string]string{} // code -> last column
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|(.*) \\|$").FindAllStringSubmatch(section, -1) {
		require.NotContains(t, listed, row[1], "listed twice")
		listed[row[1]] = row[2][strings.LastIndex(row[2], "|")+1:]
	}
	declared := map[string]bool{wire.CodeNotRegistered: true}
	for _, pkg := range []string{"../../table", "../../admission"} {
		for _, code := range codesIn(t, pkg) {
			declared[code] = true
		}
	}
	for code := range declared {
		require.Contains(t, listed, code, "the README does not list it")
	}
	for code := range listed {
		require.True(t, declared[code], "the README lists %s, which is no constant", code)
	}
	for _, row := range admission.Codes() {
		want := " no"
		if row.Code.Retryable() {
			want = " yes"
		}
		require.Equal(t, want, listed[string(row.Code)], "whether %s may be retried", row.Code)
	}
}

// codesIn returns the values of the constants of type Code in the package dir.
func codesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var codes []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				if kind, ok := value.Type.(*ast.Ident); !ok || kind.Name != "Code" {
					continue
				}
				for _, v := range value.Values {
					code, err := strconv.Unquote(v.(*ast.BasicLit).Value)
					require.NoError(t, err)
					codes = append(codes, code)
				}
			}
		}
	}
	require.NotEmpty(t, codes, dir)
	return codes
}
