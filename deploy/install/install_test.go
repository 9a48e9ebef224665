package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/deploy"
)

const routerConfig = `{
  // the router's own
  "port": 7000,
  "modules": {
    "echo": { "program": "/opt/echo", "args": [ "-v" ] }, // one
    "tool": { "program": "/opt/tool" },
  },
}
`

const routerPath = "/srv/subc/subc.jsonc"

// newTestRoot is a root with a router and nothing of ours.
func newTestRoot(t *testing.T) (root string, in Params) {
	t.Helper()
	root = t.TempDir()
	mustWrite(t, root, routerPath, routerConfig, 0o640)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/local/bin"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/systemd/system"), 0o755))
	program := filepath.Join(t.TempDir(), "scopeward")
	require.NoError(t, os.WriteFile(program, []byte("#!program"), 0o755))
	return root, Params{Root: root, Program: program, User: "subc", RouterUnit: "subc.service"}
}

func mustWrite(t *testing.T, root, path, text string, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode))
}

// tree is everything below root: names, modes and texts.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		text := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			text = string(b)
		}
		all[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + text
		return nil
	}))
	return all
}

func mustInstall(t *testing.T, in Params) *Plan {
	t.Helper()
	p, err := New(in)
	require.NoError(t, err)
	require.NoError(t, p.Apply())
	return p
}

func mustRemove(t *testing.T, root string, purge bool) *Plan {
	t.Helper()
	p, err := Removal(root, purge)
	require.NoError(t, err)
	require.NoError(t, p.Apply())
	return p
}

// actions are a plan's steps, a line each.
func actions(p *Plan) []string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, strings.TrimSpace(string(s.Action)+" "+s.Path+" "+s.Why))
	}
	return lines
}

func TestAPlanIsShownAndChangesNothing(t *testing.T) {
	root, in := newTestRoot(t)
	in.RouterConfig, in.Wrap = routerPath, []string{"echo", "tool"}
	before := tree(t, root)
	p, err := New(in)
	require.NoError(t, err)
	require.True(t, p.Changes())
	require.Equal(t, []string{
		"create /etc/scopeward/installed.json what is installed, for uninstall",
		"create /etc/scopeward/scopeward.jsonc",
		"create /etc/systemd/system/scopeward.service.d/50-settings.conf",
		"create /etc/systemd/system/subc.service.d/50-scopeward.conf",
		"create /etc/systemd/system/scopeward.service",
		"create /etc/systemd/system/scopeward.socket",
		"create /etc/systemd/system/scopeward@.service",
		"create /usr/local/bin/scopeward",
		"create /srv/subc/subc.jsonc.before-scopeward backup of /srv/subc/subc.jsonc",
		"wrap /srv/subc/subc.jsonc modules echo, tool",
	}, actions(p))
	require.Equal(t, before, tree(t, root))
}

func TestInstallAndUninstallLeaveTheTreeAsItWas(t *testing.T) {
	for _, wrap := range [][]string{nil, {"echo"}, {"echo", "tool"}} {
		root, in := newTestRoot(t)
		in.RouterConfig, in.Wrap = routerPath, wrap
		before := tree(t, root)
		mustInstall(t, in)
		installed := tree(t, root)
		require.NotEqual(t, before, installed)

		p, err := New(in)
		require.NoError(t, err)
		require.False(t, p.Changes(), "twice is once: %v", actions(p))
		require.Equal(t, installed, tree(t, root))

		require.NoError(t, os.MkdirAll(filepath.Join(root, stateFolder), 0o700))
		mustRemove(t, root, false)
		delete(before, "/var")
		delete(before, "/var/lib")
		after := tree(t, root)
		delete(after, "/var")
		delete(after, "/var/lib")
		require.Equal(t, before, after)
		require.False(t, mustRemove(t, root, false).Changes())
	}
}

func TestALedgerOutlivesItsSidecar(t *testing.T) {
	root, in := newTestRoot(t)
	mustInstall(t, in)
	mustWrite(t, root, stateFolder+"/ledger.db", "x", 0o600)
	mustRemove(t, root, true)
	require.Contains(t, tree(t, root), stateFolder+"/ledger.db")
}

// Modules can be wrapped one after the other; the backup is of the beginning.
func TestWrappingInTwoStepsRestoresTheBeginning(t *testing.T) {
	root, in := newTestRoot(t)
	before := tree(t, root)
	mustInstall(t, in)
	in.RouterConfig = routerPath
	for _, id := range []string{"echo", "tool"} {
		in.Wrap = []string{id}
		mustInstall(t, in)
	}
	require.Contains(t, tree(t, root)[routerPath], `"args": ["exec", "--connection-file", "/run/scopeward/subc-connection.json", "--", "/opt/tool"]`)
	mustRemove(t, root, false)
	require.Equal(t, before, tree(t, root))
}

// What the operator writes meanwhile is the operator's: the commands are
// unwrapped where they stand, and the backup is left to look at.
func TestARouterConfigurationThatWasChangedKeepsTheChange(t *testing.T) {
	root, in := newTestRoot(t)
	in.RouterConfig, in.Wrap = routerPath, []string{"echo", "tool"}
	mustInstall(t, in)
	text, err := os.ReadFile(filepath.Join(root, routerPath))
	require.NoError(t, err)
	mustWrite(t, root, routerPath, strings.Replace(string(text), "7000", "7001", 1), 0o640)
	mustRemove(t, root, false)
	after := tree(t, root)
	require.Contains(t, after[routerPath], `"port": 7001`)
	require.NotContains(t, after[routerPath], "scopeward")
	require.Contains(t, after[routerPath], `{ "program": "/opt/echo", "args": [ "-v" ] }, // one`)
	require.Equal(t, "-rw-r----- "+routerConfig, after[routerPath+backupSuffix])
}

func TestChangedFilesOfOursStayUnlessPurged(t *testing.T) {
	root, in := newTestRoot(t)
	before := tree(t, root)
	mustInstall(t, in)
	mustWrite(t, root, ConfigPath, string(deploy.File(deploy.SampleConfig))+"// mine\n", 0o644)

	p, err := New(in)
	require.NoError(t, err)
	require.False(t, p.Changes())
	require.Contains(t, actions(p), "keep /etc/scopeward/scopeward.jsonc yours")

	require.Contains(t, actions(mustRemove(t, root, false)), "keep /etc/scopeward/scopeward.jsonc changed since: remove it with --purge")
	require.Contains(t, tree(t, root)[ConfigPath], "// mine")
	require.NotContains(t, tree(t, root), "/usr/local/bin/scopeward")
	mustRemove(t, root, true)
	require.Equal(t, before, tree(t, root))
}

// A unit that was edited where it lies is kept too: a drop-in would be better.
func TestAnEditedUnitIsKept(t *testing.T) {
	root, in := newTestRoot(t)
	mustInstall(t, in)
	mustWrite(t, root, unitFolder+"/scopeward.socket", "[Socket]\nListenStream=127.0.0.1:1\n", 0o644)
	p, err := New(in)
	require.NoError(t, err)
	require.Contains(t, actions(p), "keep "+unitFolder+"/scopeward.socket yours")
}

func TestAnotherVersionsFilesAreUpdated(t *testing.T) {
	root, in := newTestRoot(t)
	before := tree(t, root)
	mustInstall(t, in)
	require.NoError(t, os.WriteFile(in.Program, []byte("#!newer"), 0o755))
	require.Contains(t, actions(mustInstall(t, in)), "update /usr/local/bin/scopeward")
	mustRemove(t, root, false)
	require.Equal(t, before, tree(t, root))
}

func TestForeignFilesAreNeitherReplacedNorRemoved(t *testing.T) {
	root, in := newTestRoot(t)
	mustWrite(t, root, unitFolder+"/scopeward.service", "[Service]\n", 0o644)
	_, err := New(in)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, unitFolder+"/scopeward.service")

	root, in = newTestRoot(t)
	mustWrite(t, root, ConfigPath, "{}", 0o600)
	before := tree(t, root)
	mustInstall(t, in)
	mustRemove(t, root, true)
	require.Equal(t, before, tree(t, root), "a configuration that was there is the operator's")
}

// Beside a package only what the package leaves open is written.
func TestBesideAPackage(t *testing.T) {
	root, in := newTestRoot(t)
	mustWrite(t, root, packagedUnit, "x", 0o644)
	in.RouterConfig, in.Wrap = routerPath, []string{"echo"}
	mustInstall(t, in)
	after := tree(t, root)
	require.NotContains(t, after, programPath)
	require.NotContains(t, after, unitFolder+"/scopeward.service")
	require.Contains(t, after[routerPath], `"program": "/usr/bin/scopeward"`)
}

func TestNamesAreRendered(t *testing.T) {
	root, in := newTestRoot(t)
	in.User, in.RouterUnit = "agents", "router.service"
	mustInstall(t, in)
	after := tree(t, root)
	require.Contains(t, after[unitFolder+"/scopeward.service"], "After=router.service\n")
	require.Contains(t, after[unitFolder+"/scopeward.service"], "ExecStart=/usr/local/bin/scopeward run")
	require.Contains(t, after[unitFolder+"/scopeward.service.d/50-settings.conf"], "\nUser=agents\n")
	require.Contains(t, after, unitFolder+"/router.service.d/50-scopeward.conf")
}

func TestParamsThatCantBeMeant(t *testing.T) {
	for says, change := range map[string]func(*Params){
		"--user":          func(p *Params) { p.User = "a\nExecStartPre=/bin/x" },
		"--router-unit":   func(p *Params) { p.RouterUnit = "../x.service" },
		"--router-config": func(p *Params) { p.Wrap = []string{"echo"} },
		"is not there":    func(p *Params) { p.Wrap, p.RouterConfig = []string{"echo"}, "/none" },
		"has no module":   func(p *Params) { p.Wrap, p.RouterConfig = []string{"none"}, routerPath },
	} {
		_, in := newTestRoot(t)
		change(&in)
		_, err := New(in)
		require.ErrorContains(t, err, says)
	}
}

func TestARecordThatIsNotOursIsNotBelieved(t *testing.T) {
	for _, text := range []string{"{", `{"version": 1, "more": 1}`, `{"version": 9, "folders": [], "files": [], "wrapped": []}`} {
		root, in := newTestRoot(t)
		mustWrite(t, root, recordPath, text, 0o644)
		_, err := New(in)
		require.ErrorContains(t, err, recordPath)
		_, err = Removal(root, true)
		require.ErrorContains(t, err, recordPath)
	}
}
