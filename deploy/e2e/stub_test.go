package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
	"scopeward/sidecar"
	"scopeward/sidecar/config"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// TestTransparency_Stub is TestTransparency on the stub router, in one process.
func TestTransparency_Stub(t *testing.T) {
	router, err := routertest.NewRouter(routertest.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { router.Close() })

	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	front := filepath.Join(dir, "scopeward-connection.json")
	file := filepath.Join(dir, "config.jsonc")
	require.NoError(t, os.WriteFile(file, wire.MustMarshal(object{
		"version": 1, "router": object{"connection_file": router.Path()}, "listen": "127.0.0.1:0",
		"connection_file": front, "attribution": object{"mode": "off"},
	}), 0o600))
	cfg, err := config.Load(file, func(string) string { return "" })
	require.NoError(t, err)
	s := sidecar.New(sidecar.Params{Config: cfg, Log: zap.NewNop()})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, s.Start(ctx))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	within(t, patience, "the sidecar", func() bool {
		conn, err := dialFile(front)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	requireTransparent(t, router.Path(), front, dir)
}
