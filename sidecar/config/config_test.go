package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

func noEnv(string) string { return "" }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

const good = `{
	// comments and trailing commas are fine
	"router": {"connection_file": "/run/r/c.json"},
	"connection_file": "/run/sw/c.json",
}`

// The golden file is the contract with operators. SCOPEWARD_GOLDEN=write renews
// it; the difference is then read by eye.
func TestEveryComplaintIsOneLineWithItsPlaceAndRemedy(t *testing.T) {
	const golden = "testdata/errors.txtar"
	ar, err := txtar.ParseFile(golden)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(ar.Files)/2, 40)
	for i := 0; i+1 < len(ar.Files); i += 2 {
		name := strings.TrimSuffix(ar.Files[i].Name, ".jsonc")
		t.Run(name, func(t *testing.T) {
			require.Equal(t, name+".line", ar.Files[i+1].Name)
			_, err := Parse("sw.jsonc", ar.Files[i].Data, noEnv)
			require.Error(t, err)
			line := err.Error() + "\n"
			require.Equal(t, 1, strings.Count(line, "\n"), "one line")
			if os.Getenv("SCOPEWARD_GOLDEN") == "write" {
				ar.Files[i+1].Data = []byte(line)
				return
			}
			require.Equal(t, string(ar.Files[i+1].Data), line)
		})
	}
	if os.Getenv("SCOPEWARD_GOLDEN") == "write" {
		require.NoError(t, os.WriteFile(golden, txtar.Format(ar), 0o644))
	}
}

func TestDefaults(t *testing.T) {
	c, err := Parse("sw.jsonc", []byte(good), noEnv)
	require.NoError(t, err)
	want := Default()
	want.Router.ConnectionFile = "/run/r/c.json"
	want.ConnectionFile = "/run/sw/c.json"
	want.Operator.Socket = "/run/sw/scopeward.sock"
	require.Equal(t, want, c)
	require.Equal(t, []string{"prefrontal-core"}, c.ScopeAuthorityOwners)
	require.Equal(t, "127.0.0.1:0", c.Listen)
	require.Equal(t, ScopesAuto, c.Scopes)
	require.True(t, c.Heal)
	require.Equal(t, Attribution{Mode: AttributionObserve, Match: MatchTree}, c.Attribution)
}

func TestEveryKeyIsRead(t *testing.T) {
	c, err := Parse("sw.jsonc", []byte(`{
		"version": 1,
		"router": {"connection_file": "/run/r/c.json"},
		"listen": "[::1]:9000",
		"connection_file": "/run/sw/c.json",
		"scope_authority_owners": [],
		"scopes": "own",
		"heal": false,
		"attribution": {"mode": "enforce", "match": "exact", "cgroup": "/sys/fs/cgroup"},
		"operator": {"socket": "/run/o.sock"},
		"metrics": {"listen": "127.0.0.1:9464"},
		"ledger": {"path": "/var/lib/sw/ledger.db", "tombstones": true, "wait_ms": 50},
		"log": {"level": "warn", "format": "json"}
	}`), noEnv)
	require.NoError(t, err)
	require.Equal(t, Config{
		Version: 1, Router: Router{"/run/r/c.json"}, Listen: "[::1]:9000", ConnectionFile: "/run/sw/c.json",
		ScopeAuthorityOwners: []string{}, Scopes: ScopesOwn, Heal: false,
		Attribution: Attribution{AttributionEnforce, MatchExact, "/sys/fs/cgroup"},
		Operator:    Operator{"/run/o.sock"}, Metrics: Metrics{"127.0.0.1:9464"},
		Ledger: Ledger{"/var/lib/sw/ledger.db", true, 50}, Log: Log{LevelWarn, FormatJSON},
	}, c)
}

func TestEnvironmentOverridesTheLevel(t *testing.T) {
	c, err := Parse("sw.jsonc", []byte(good), env(EnvLog, "debug"))
	require.NoError(t, err)
	require.Equal(t, LevelDebug, c.Log.Level)

	_, err = Parse("sw.jsonc", []byte(good), env(EnvLog, "loud"))
	require.EqualError(t, err, `$SCOPEWARD_LOG: is "loud": use "debug", "info", "warn" or "error"`)
}

func TestRouterFileIsDiscoveredAsTheRoutersClientsDo(t *testing.T) {
	const text = `{"connection_file": "/run/sw/c.json"}`
	for _, c := range []struct {
		name string
		env  func(string) string
		want string
	}{
		{"its own variable first", env("SUBC_CONNECTION_FILE", "/a/b", "XDG_RUNTIME_DIR", "/x", "HOME", "/h"), "/a/b"},
		{"then the runtime folder", env("XDG_RUNTIME_DIR", "/x", "HOME", "/h"), "/x/subc-connection.json"},
		{"then home", env("HOME", "/h"), "/h/.local/share/cortexkit/run/subc-connection.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse("sw.jsonc", []byte(text), c.env)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Router.ConnectionFile)
		})
	}
	_, err := Parse("sw.jsonc", []byte(text), noEnv)
	require.ErrorContains(t, err, `"router.connection_file" is not set`)
}

func TestPublishedPathIsNeverTheRoutersByAnyLink(t *testing.T) {
	dir := t.TempDir()
	router := filepath.Join(dir, "router.json")
	parse := func(ours string) error {
		_, err := Parse("sw.jsonc", []byte(`{"router":{"connection_file":"`+router+`"},"connection_file":"`+ours+`"}`), noEnv)
		return err
	}
	require.NoError(t, parse(filepath.Join(dir, "ours.json")))

	folder := filepath.Join(dir, "folder")
	require.NoError(t, os.Symlink(dir, folder))
	require.ErrorContains(t, parse(filepath.Join(folder, "router.json")), "is the router's own file")

	dangling := filepath.Join(dir, "dangling.json")
	require.NoError(t, os.Symlink("router.json", dangling), "the router has not written it yet")
	require.ErrorContains(t, parse(dangling), "is the router's own file")

	loop := filepath.Join(dir, "loop.json")
	require.NoError(t, os.Symlink("loop.json", loop))
	require.NoError(t, parse(loop), "a loop resolves to itself")
}

func TestLoadNamesWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.jsonc"), noEnv)
	require.EqualError(t, err, dir+"/none.jsonc: no such file: name one with --config")
	_, err = Load(dir, noEnv)
	require.EqualError(t, err, dir+": is not a file: name a configuration file with --config")

	file := filepath.Join(dir, "sw.jsonc")
	require.NoError(t, os.WriteFile(file, []byte(good), 0o600))
	_, err = Load(file, noEnv)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(file, MaxFile+1))
	_, err = Load(file, noEnv)
	require.ErrorContains(t, err, "is over 1 MiB")
}
