package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if stage := os.Getenv(envStage); stage != "" {
		act(stage)
		return
	}
	if name := os.Getenv(envFlood); name != "" {
		flood(name)
		return
	}
	code := m.Run()
	for _, dir := range []string{build.dir, stubBuild.dir} {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// The programs that deploy/realrouter builds.
const (
	progRouter    = "subc"
	progOwner     = "scope-owner"
	progEcho      = "echo-module"
	progCarrier   = "carrier"
	progOldModule = "oldmodule"
)

// programs returns the folder with the router and the modules, or skips the
// test: only who asks for the real router waits for it.
func programs(t *testing.T) string {
	t.Helper()
	if os.Getenv("SCOPEWARD_E2E") != "required" {
		t.Skip("the real router is not asked for: deploy/realrouter/build.sh && SCOPEWARD_E2E=required go test ./deploy/e2e")
	}
	dir := os.Getenv("SCOPEWARD_ROUTER_BIN")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "scopeward-realrouter")
	}
	for _, name := range []string{progRouter, progOwner, progEcho, progCarrier, progOldModule} {
		_, err := os.Stat(filepath.Join(dir, name))
		require.NoErrorf(t, err, "run deploy/realrouter/build.sh")
	}
	return dir
}

// buildOf is a binary of this module, made once for the whole run.
type buildOf struct {
	once sync.Once
	dir  string
	err  error
}

var build, stubBuild buildOf

// scopeward returns the path of the sidecar's binary.
func scopeward(t *testing.T) string {
	t.Helper()
	return built(t, &build, "scopeward", "scopeward/cmd/scopeward")
}

// built returns the path of the program name, made from pkg.
func built(t *testing.T, b *buildOf, name, pkg string) string {
	t.Helper()
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "scopeward-e2e-bin"); b.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		args := []string{"build", "-o", filepath.Join(b.dir, name)}
		if os.Getenv("SCOPEWARD_E2E_RACE") != "" {
			args = append(args, "-race")
		}
		cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.dir, name)
}
