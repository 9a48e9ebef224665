package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProjectRoots: the router resolves a project root. A scoped open is judged
// as the router judges an unscoped one, and binds the same root.
func TestProjectRoots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	w.play(idOwner, syncStep(1, record("s", 1)))
	require.NoError(t, os.MkdirAll(w.path("real/inner"), 0o700))
	require.NoError(t, os.Symlink(w.path("real"), w.path("link")))
	require.NoError(t, os.MkdirAll(w.path("gone"), 0o700))
	require.NoError(t, os.Remove(w.path("gone")))
	require.NoError(t, os.Symlink(w.path("nowhere"), w.path("dangling")))
	w.start()
	w.waitSynced(idOwner, 1)
	admin, client := w.admin(), w.client()

	for name, root := range map[string]string{
		"plain": w.path("real"), "through a symbolic link": w.path("link/inner"),
		"a symbolic link itself": w.path("link"), "with dots": w.path("real") + "/inner/..",
		"vanished": w.path("gone"), "a dangling link": w.path("dangling"),
		"relative": "real", "empty": "", "a file": w.path("cfg/cortexkit/subc.jsonc"),
	} {
		t.Run(name, func(t *testing.T) {
			plain, scoped := w.opening(idEcho), w.scoped(idEcho, "s", 1)
			plain["identity"].(object)["project_root"] = root
			scoped["identity"].(object)["project_root"] = root
			_, want := client.open(plain)
			wantRoot := w.boundRoot()
			_, got := client.open(scoped)
			if want != nil {
				require.NotNil(t, got, "the unscoped open is refused %s", want.Code)
				require.Equal(t, *want, *got)
				return
			}
			require.Nil(t, got)
			require.Equal(t, wantRoot, w.boundRoot())
		})
	}
	client.close()
	w.noRoutes(admin, idEcho)
}

// boundRoot is the project root of the echo module's last bind.
func (w *world) boundRoot() string {
	all := w.saw(idEcho)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Kind == "bind" {
			return all[i].Identity.ProjectRoot
		}
	}
	return ""
}
