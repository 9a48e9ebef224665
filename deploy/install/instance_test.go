package install

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/sidecar/config"
)

const users = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n"

// newInstanceRoot is a root whose user alice has a router.
func newInstanceRoot(t *testing.T) (root string, in Params) {
	t.Helper()
	root, in = newTestRoot(t)
	mustWrite(t, root, passwd, users, 0o644)
	in.Instance = "alice"
	return root, in
}

func TestAnInstanceHasAConfigurationOfItsOwn(t *testing.T) {
	root, in := newInstanceRoot(t)
	in.RouterConfig, in.Wrap = routerPath, []string{"echo"}
	before := tree(t, root)
	p, err := New(in)
	require.NoError(t, err)
	require.Equal(t, []string{
		"create /etc/scopeward/installed.json what is installed, for uninstall",
		"create /etc/scopeward/alice.jsonc",
		"create /etc/systemd/system/scopeward@.service",
		"create /usr/local/bin/scopeward",
		"create /srv/subc/subc.jsonc.before-scopeward backup of /srv/subc/subc.jsonc",
		"wrap /srv/subc/subc.jsonc modules echo",
	}, actions(p))
	require.Contains(t, p.Next, "systemctl enable --now scopeward@alice.service")
	require.NoError(t, p.Apply())

	c, err := config.Load(filepath.Join(root, "/etc/scopeward/alice.jsonc"), func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, "/run/user/1000/subc-connection.json", c.Router.ConnectionFile)
	require.Equal(t, "/run/scopeward-alice/subc-connection.json", c.ConnectionFile)
	require.Equal(t, "/run/scopeward-alice/scopeward.sock", c.Operator.Socket)
	after := tree(t, root)
	require.Contains(t, after[routerPath], `"--connection-file", "/run/scopeward-alice/subc-connection.json"`)
	require.Contains(t, after[unitFolder+"/scopeward@.service"], "--config /etc/scopeward/%i.jsonc\n")
	require.Contains(t, after[unitFolder+"/scopeward@.service"], "RuntimeDirectory=scopeward-%i\n")

	mustRemove(t, root, false)
	require.Equal(t, before, tree(t, root))
}

// A router that has published itself already is found where it did.
func TestAnInstancesRouterIsFoundWhereItIs(t *testing.T) {
	root, in := newInstanceRoot(t)
	const home = "/home/alice/.local/share/cortexkit/run/subc-connection.json"
	mustWrite(t, root, home, "{}", 0o600)
	p, err := New(in)
	require.NoError(t, err)
	found, err := p.routerFile("alice")
	require.NoError(t, err)
	require.Equal(t, home, found)
	mustWrite(t, root, "/run/user/1000/subc-connection.json", "{}", 0o600)
	found, err = p.routerFile("alice")
	require.NoError(t, err)
	require.Equal(t, "/run/user/1000/subc-connection.json", found, "the runtime folder comes first")
}

// One root holds the system's and several users': the record has them all.
func TestInstancesBesideTheSystems(t *testing.T) {
	root, in := newInstanceRoot(t)
	before := tree(t, root)
	mustInstall(t, in)
	in.Instance = "root"
	mustInstall(t, in)
	in.Instance = ""
	mustInstall(t, in)
	after := tree(t, root)
	for _, path := range []string{"/etc/scopeward/alice.jsonc", "/etc/scopeward/root.jsonc", ConfigPath, unitFolder + "/scopeward.service"} {
		require.Contains(t, after, path)
	}
	in.Instance = "alice"
	p, err := New(in)
	require.NoError(t, err)
	require.False(t, p.Changes())
	mustRemove(t, root, false)
	require.Equal(t, before, tree(t, root))
}

func TestInstancesThatCantBeMeant(t *testing.T) {
	for _, name := range []string{"bob", "../x", "a b", "scopeward", "%i"} {
		_, in := newInstanceRoot(t)
		in.Instance = name
		_, err := New(in)
		require.ErrorContains(t, err, "--instance", name)
	}
	_, in := newInstanceRoot(t)
	in.Wrap = []string{"echo"}
	_, err := New(in)
	require.ErrorContains(t, err, "--router-config")
	require.ErrorAs(t, err, new(*ParamsError))
}
