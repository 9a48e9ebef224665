package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stop takes as long as somebody has to be waited for; whoever does not want
// to wait says so twice.
func TestASecondSIGTERMEndsAtOnce(t *testing.T) {
	dir, err := os.MkdirTemp("", "sw")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	free.Close()
	file := filepath.Join(dir, "c.jsonc")
	require.NoError(t, os.WriteFile(file, []byte(`{"router": {"connection_file": "`+dir+`/r.json"}, "connection_file": "`+dir+`/c.json",
		"listen": "`+addr+`", "attribution": {"mode": "off"}}`), 0o600))

	cmd := exec.Command("scopeward", "run", "--config", file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	var half net.Conn
	require.Eventually(t, func() bool {
		half, err = net.Dial("unix", filepath.Join(dir, "scopeward.sock"))
		return err == nil
	}, 20*time.Second, 10*time.Millisecond, "the operator socket")
	defer half.Close()
	_, err = half.Write([]byte("GET / HTTP/1.1\r\n")) // and no more: the stop waits for it
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, 20*time.Second, 10*time.Millisecond, "the end of accepting")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	err = cmd.Wait()
	require.Error(t, err)
	require.Equal(t, syscall.SIGTERM, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "it ended by the second, not in good order")
}
