package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a user that owns nothing else.
const nobody = 65534

// TestConcealed: the memory of a sidecar is nobody's but root's to read, not
// even its own user's, and no core dump holds a key. Attribution reads the
// processes of others as before.
func TestConcealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	binary := w.path("scopeward")
	place(t, scopeward(t), binary)
	require.NoError(t, filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chown(path, nobody, nobody)
	}))
	cmd := exec.Command(binary, "run", "--config", w.path("side/config.jsonc"))
	cmd.Env = w.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

	proc := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	within(t, patience, "the socket", func() bool { _, err := os.Stat(w.socket()); return err == nil })
	info, err := os.Stat(proc + "environ")
	require.NoError(t, err)
	require.Zero(t, info.Sys().(*syscall.Stat_t).Uid, "the process may be traced by its own user")
	limits, err := os.ReadFile(proc + "limits")
	require.NoError(t, err)
	require.Regexp(t, `Max core file size +0 +0 `, string(limits))

	dump := exec.Command("/bin/cat", proc+"environ")
	dump.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	require.Error(t, dump.Run(), "its own user reads its environment")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
