package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// The socket is open to nobody else from the moment that it is there, whatever
// the umask is.
func TestSocketIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(shortDir(t), "s")
	l, err := Listen(t.Context(), path)
	require.NoError(t, err)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|socketMode, info.Mode())
	require.NoError(t, l.Close())
	require.NoFileExists(t, path, "its end takes it away")
}

// A dead socket is replaced, a live one and what is no socket are not.
func TestSocketInPlace(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	live, err := Listen(t.Context(), path)
	require.NoError(t, err)
	_, err = Listen(t.Context(), path)
	require.ErrorIs(t, err, ErrSocketTaken)
	require.EqualError(t, err, fmt.Sprintf(`"operator.socket" %q: another process answers there; stop it, or choose another path`, path))
	require.NoError(t, live.Close())
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err = Listen(t.Context(), path)
	require.ErrorContains(t, err, "is there and is no socket; move it away")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
}

func TestSocketInAFolderOfItsOwn(t *testing.T) {
	dir := filepath.Join(shortDir(t), "a", "b")
	l, err := Listen(t.Context(), filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer l.Close()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o700, info.Mode())
}

const (
	strangerEnv = "OPERATOR_TEST_STRANGER"
	strangerUID = 65534
)

// stranger is a process of another user that asks at the socket.
func stranger(path string) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println("dial:", err)
		return
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "GET /v1/status HTTP/1.0\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	fmt.Printf("read: %q\n", answer)
}

// Whoever is neither the same user nor root is closed without an answer, even
// where the file's mode lets it in.
func TestSocketRefusesAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another user's process takes root to start")
	}
	s := newTestServer(t)
	require.NoError(t, os.Chmod(filepath.Dir(s.socket), 0o755))
	require.NoError(t, os.Chmod(s.socket, 0o666))
	// The links lead to the program and the folder even for a user who can't walk
	// their paths.
	folder, err := os.Open(filepath.Dir(s.socket))
	require.NoError(t, err)
	defer folder.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.ExtraFiles = []*os.File{folder}
	cmd.Env = []string{strangerEnv + "=/proc/self/fd/3/" + filepath.Base(s.socket)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: strangerUID, Gid: strangerUID}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
	require.Equal(t, "read: \"\"\n", out.String())
	lines := s.logs.FilterMessage("a peer of the operator socket is another user").All()
	require.Len(t, lines, 1)
	require.Equal(t, zap.WarnLevel, lines[0].Level)
	require.EqualValues(t, strangerUID, lines[0].ContextMap()["uid"])
}

// Connections are bounded; those that end make room.
func TestSocketBoundsItsPeers(t *testing.T) {
	s := newTestServer(t)
	var open []net.Conn
	for range peersAtOnce {
		c, err := net.Dial("unix", s.socket)
		require.NoError(t, err)
		defer c.Close()
		fmt.Fprintf(c, "GET /v1/openapi.json HTTP/1.1\r\nHost: s\r\n\r\n")
		_, err = c.Read(make([]byte, 1))
		require.NoError(t, err)
		open = append(open, c)
	}
	c, err := net.Dial("unix", s.socket)
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/openapi.json HTTP/1.1\r\nHost: s\r\n\r\n")
	answer, _ := io.ReadAll(c)
	require.Empty(t, answer, "one more is closed without an answer")
	for _, c := range open {
		c.Close()
	}
	require.Eventually(t, func() bool { _, err := s.Health(t.Context()); return err == nil }, time.Minute, 10*time.Millisecond)
}
