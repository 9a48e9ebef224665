package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme_NamedTestsExist: what the README's threat model and table of faults
// say is tested is tested by a function of that name.
func TestReadme_NamedTestsExist(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, f := range function.FindAllSubmatch(source, -1) {
			declared[string(f[1])] = true
		}
		return err
	}))
	for _, title := range []string{"Threat model", "Faults found"} {
		_, section, found := strings.Cut(string(text), "\n## "+title+"\n")
		require.True(t, found, title)
		section, _, _ = strings.Cut(section, "\n## ")
		rows := strings.Count(section, "\n| ") - 1
		require.Greater(t, rows, 8, title)
		for _, name := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(section, -1) {
			require.True(t, declared[name[1]], "%s names %s, which is no test", title, name[1])
		}
	}
}
