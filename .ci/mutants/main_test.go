package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixture is a module with one rule and its test, and the list of mutants given.
func fixture(t *testing.T, list string) []mutant {
	t.Helper()
	t.Chdir(t.TempDir())
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module fixture\n\ngo 1.26\n")
	write("p/p.go", "package p\n\n// Even is the rule.\nfunc Even(n int) bool { return n%2 == 0 }\n")
	write("p/p_test.go", `package p

import "testing"

func TestEven(t *testing.T) {
	t.Run("four", func(t *testing.T) {
		if !Even(4) {
			t.Fatal("4")
		}
	})
	t.Run("five", func(t *testing.T) {
		if Even(5) {
			t.Fatal("5")
		}
	})
}
`)
	write("p/testdata/mutants.list", list)
	mutants, err := readLists("*/testdata/mutants.list")
	require.NoError(t, err)
	return mutants
}

func verdictOf(t *testing.T, limit time.Duration, test, replacement string) verdict {
	t.Helper()
	mutants := fixture(t, "row r\ntest "+test+"\nfile p.go\n-n%2 == 0\n+"+replacement+"\n")
	require.Len(t, mutants, 1)
	r := runner{scratch: t.TempDir(), limit: limit}
	require.NoError(t, r.baseline(t.Context(), mutants))
	v, output := r.one(t.Context(), mutants[0])
	t.Log(output)
	source, err := os.ReadFile("p/p.go")
	require.NoError(t, err)
	require.Contains(t, string(source), "n%2 == 0", "the tree is as it was")
	return v
}

func TestAMutantIsKilledByTheNamedTestOnly(t *testing.T) {
	const long = 5 * time.Minute
	require.Equal(t, killed, verdictOf(t, long, "TestEven/five", "true"))
	require.Equal(t, killed, verdictOf(t, long, "TestEven", "true"))
	require.Equal(t, survived, verdictOf(t, long, "TestEven/four", "true"))
	require.Equal(t, survived, verdictOf(t, long, "TestEven", "n&1 == 0"))
	require.Equal(t, broken, verdictOf(t, long, "TestEven", "m == 0"))
	require.Equal(t, otherwise, verdictOf(t, long, "TestEven", "true }; func init() { panic(1)"))
	require.Equal(t, timedOut, verdictOf(t, 15*time.Second, "TestEven", "func() bool { for { } }()"))
}

func TestANamedTestMustBeThereAndPass(t *testing.T) {
	mutants := fixture(t, "row r\ntest TestOdd\nfile p.go\n-n%2 == 0\n+true\n")
	r := runner{scratch: t.TempDir(), limit: time.Minute}
	require.ErrorContains(t, r.baseline(t.Context(), mutants), "TestOdd")
}

func TestTheOldTextMustBeThereOnce(t *testing.T) {
	for _, old := range []string{"n%3", "n"} {
		mutants := fixture(t, "row r\ntest TestEven\nfile p.go\n-"+old+"\n+x\n")
		r := runner{scratch: t.TempDir(), limit: time.Minute}
		v, output := r.one(t.Context(), mutants[0])
		require.Equal(t, unrunnable, v)
		require.Contains(t, output, "mutants.list:1")
	}
}

func TestAListKeepsRowAndFileUntilTheNext(t *testing.T) {
	mutants := fixture(t, "# why\n\nrow a b\ntest T1\nfile p.go\n-x\n-y\n+z\n\n# why\ntest T2\nin q\n-x\n")
	require.Equal(t, []mutant{
		{rows: []string{"a", "b"}, dir: "p", in: "p", test: "T1", file: "p.go", old: "x\ny", new: "z", at: "p/testdata/mutants.list:3"},
		{rows: []string{"a", "b"}, dir: "p", in: "q", test: "T2", file: "p.go", old: "x", at: "p/testdata/mutants.list:10"},
	}, mutants)
}

func TestAListThatIsNoneIsRefused(t *testing.T) {
	for _, list := range []string{"row a\ntest T\nfile f\n", "test T\nfile f\n-x\n", "row a\nfile f\n-x\n", "row a\ntest T\nfile f\n-x\n+x\n", "what\n"} {
		t.Chdir(t.TempDir())
		require.NoError(t, os.MkdirAll("p/testdata", 0o755))
		require.NoError(t, os.WriteFile("p/testdata/mutants.list", []byte(list), 0o644))
		_, err := readLists("*/testdata/mutants.list")
		require.Error(t, err, list)
	}
}

func TestEveryRowHasAMutantOrIsOwed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.txt")
	require.NoError(t, os.WriteFile(path, []byte("# rows\na | one\nb | two | somebody\n"), 0o644))
	list, err := readRows(path)
	require.NoError(t, err)
	require.ErrorContains(t, list.cover(nil), "a one")
	require.NoError(t, list.cover([]mutant{{rows: []string{"a"}}}))
	require.ErrorContains(t, list.cover([]mutant{{rows: []string{"c"}}}), "no such row: c")
}
