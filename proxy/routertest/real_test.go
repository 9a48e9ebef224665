package routertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// real is a process of the real router, whose modules are shells that write
// their nonce to a folder and sleep.
type real struct {
	t    *testing.T
	path string // its connection file
	dir  string
}

// routerProgram returns the real router's program, or skips the test.
func routerProgram(t *testing.T) string {
	t.Helper()
	if os.Getenv("SCOPEWARD_E2E") != "required" {
		t.Skip("the real router is not asked for: deploy/realrouter/build.sh && SCOPEWARD_E2E=required go test ./proxy/routertest")
	}
	dir := os.Getenv("SCOPEWARD_ROUTER_BIN")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "scopeward-realrouter")
	}
	return filepath.Join(dir, "subc")
}

func newRealRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	program := routerProgram(t)
	dir := t.TempDir()
	r := &real{t: t, dir: dir, path: filepath.Join(dir, "run", connfile.Name)}
	for _, name := range []string{"cfg/cortexkit", "run", "data", "spool"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	modules := Doc{}
	for _, m := range cfg.Modules {
		modules[m.ID] = Doc{
			"program": "/bin/sh", "args": []string{"-c", `printf %s "$SUBC_LAUNCH_NONCE" > "$SPOOL/.$SUBC_MODULE_ID" && mv "$SPOOL/.$SUBC_MODULE_ID" "$SPOOL/$SUBC_MODULE_ID"; exec sleep 60`},
			"env":     Doc{"SPOOL": filepath.Join(dir, "spool")},
			"enabled": !m.Disabled, "reserved": m.Reserved, "drain_timeout_ms": 100,
		}
	}
	config := wire.MustMarshal(Doc{"version": 1, "port": FreePort(t), "modules": modules})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cfg/cortexkit/subc.jsonc"), config, 0o600))

	log, err := os.Create(filepath.Join(dir, "router.log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(program)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{
		"XDG_CONFIG_HOME=" + dir + "/cfg", "XDG_RUNTIME_DIR=" + dir + "/run", "XDG_DATA_HOME=" + dir + "/data",
		"XDG_STATE_HOME=" + dir + "/data", "HOME=" + dir, "TMPDIR=" + dir + "/data", "PATH=/usr/bin:/bin",
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(unix.SIGTERM)
		late := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		defer late.Stop()
		cmd.Wait()
	})
	r.await("the router's connection file", func() bool {
		_, err := os.Stat(r.path)
		return err == nil
	})
	return &rig{t: t, real: r}
}

// launch waits for the router's own launch of id.
func (r *real) launch(id string) Launch {
	r.t.Helper()
	var nonce []byte
	r.await(fmt.Sprintf("the launch of %q", id), func() bool {
		b, err := os.ReadFile(filepath.Join(r.dir, "spool", id))
		nonce = b
		return err == nil
	})
	return Launch{ModuleID: id, Nonce: string(nonce)}
}

// await polls what another process does to a file.
func (r *real) await(what string, done func() bool) {
	r.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			log, _ := os.ReadFile(filepath.Join(r.dir, "router.log"))
			r.t.Fatalf("%s did not come: %s", what, clip(log))
		}
	}
}
