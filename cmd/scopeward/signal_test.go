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

	"scopeward/sidecar/operator/api"
)

// A stop takes as long as somebody has to be waited for; whoever does not want
// to wait says so twice.
func TestASecondSIGTERMEndsAtOnce(t *testing.T) {
	dir, err := os.MkdirTemp("", "sw")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "c.jsonc")
	require.NoError(t, os.WriteFile(file, []byte(`{"router": {"connection_file": "`+dir+`/r.json"}, "connection_file": "`+dir+`/c.json",
		"attribution": {"mode": "off"}}`), 0o600))

	cmd := exec.Command("scopeward", "run", "--config", file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	socket := filepath.Join(dir, "scopeward.sock")
	var half net.Conn
	require.Eventually(t, func() bool {
		half, err = net.Dial("unix", socket)
		return err == nil
	}, time.Minute, 10*time.Millisecond, "the operator socket")
	defer half.Close()
	// And no more: the stop waits for the rest, for longer than for a header's.
	_, err = half.Write([]byte("POST " + api.PathDrain + " HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{"))
	require.NoError(t, err)
	client := api.NewClient(socket) // whose connection is taken behind the half one
	defer client.Close()
	status, err := client.Status(t.Context())
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", status.Listen)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, time.Minute, 10*time.Millisecond, "the end of accepting")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	again := time.NewTicker(time.Second) // the first may still be being taken in
	defer again.Stop()
	for err = nil; err == nil; {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err = <-ended:
			require.Error(t, err)
		case <-again.C:
		}
	}
	require.Equal(t, syscall.SIGTERM, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "it ended by the second, not in good order")
}
