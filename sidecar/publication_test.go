package sidecar

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
)

func TestADeletedFileIsPublishedAgain(t *testing.T) {
	r := newRig(t)
	r.startBoth()
	before := r.published()
	require.NoError(t, os.Remove(r.front))
	require.True(t, r.published().SameDaemon(before))
	routertest.Dial(t, r.front).Settle()
}

func TestAStrangersFileInOurPlaceEndsUsLoudly(t *testing.T) {
	t.Run("another daemon's", func(t *testing.T) {
		r := newRig(t)
		router, s := r.startBoth()
		stranger := router.File()
		stranger.DaemonID = make([]byte, len(stranger.DaemonID))
		require.NoError(t, connfile.Publish(r.front, stranger))
		line := r.failure(s)
		require.Contains(t, line, r.front)
		require.Contains(t, line, "another daemon")
		r.stop(s)
		there, err := connfile.Read(r.front)
		require.NoError(t, err)
		require.True(t, there.SameDaemon(stranger), "it is not ours to remove")
	})
	t.Run("no connection file", func(t *testing.T) {
		r := newRig(t)
		_, s := r.startBoth()
		other := filepath.Join(filepath.Dir(r.front), "other")
		require.NoError(t, os.WriteFile(other, []byte("{}"), 0o600))
		require.NoError(t, os.Rename(other, r.front))
		require.Contains(t, r.failure(s), "something else has replaced our file")
	})
}

func TestASecondSidecarIsToldSo(t *testing.T) {
	r := newRig(t)
	r.startBoth()
	_, err := r.try()
	require.ErrorIs(t, err, connfile.ErrLocked)
	oneLine(t, err, r.front, "another sidecar", "pid")
}

func TestALiveDaemonsFileIsNeverReplaced(t *testing.T) {
	r := newRig(t)
	r.startRouter()
	other, err := routertest.NewRouter(routertest.Config{Path: r.front})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	_, err = r.try()
	oneLine(t, err, `"connection_file"`, r.front, "a live daemon")
	other.Close()

	require.NoError(t, connfile.Publish(r.front, other.File()))
	r.start()
	eventually(t, "the dead file's replacement", func() bool {
		f, err := connfile.Read(r.front)
		return err == nil && !f.SameDaemon(other.File())
	})
}

func TestAFileThatIsNoDaemonsIsNotOurs(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(r.front), 0o700))
	require.NoError(t, os.WriteFile(r.front, []byte("notes"), 0o600))
	_, err := r.try()
	oneLine(t, err, `"connection_file"`, r.front, "move it away")
	data, err := os.ReadFile(r.front)
	require.NoError(t, err)
	require.Equal(t, "notes", string(data))
}

func TestThePublishedPathIsNeverTheRouters(t *testing.T) {
	r := newRig(t)
	router := r.startRouter()
	r.cfg.ConnectionFile = r.router
	_, err := r.try()
	oneLine(t, err, `"connection_file"`, "is the router's own file")

	hard := filepath.Join(filepath.Dir(r.router), "hard.json")
	require.NoError(t, os.Link(r.router, hard))
	r.cfg.ConnectionFile = hard
	_, err = r.try()
	oneLine(t, err, `"connection_file"`, "is the router's own file")
	there, err := connfile.Read(r.router)
	require.NoError(t, err)
	require.True(t, there.SameDaemon(router.File()))
}

func TestABusyPortIsNamed(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r.cfg.Listen = l.Addr().String()
	_, err = r.try()
	oneLine(t, err, `"listen"`, r.cfg.Listen, "choose another port")

	lock, err := connfile.TakeLock(r.front)
	require.NoError(t, err, "a failed start leaves nothing behind")
	require.NoError(t, lock.Release())
}

func TestWrongPermissionsEndUs(t *testing.T) {
	t.Run("of the router's file", func(t *testing.T) {
		r := newRig(t)
		r.startRouter()
		require.NoError(t, os.Chmod(r.router, 0o644))
		line := r.failure(r.start())
		require.Contains(t, line, r.router)
		require.Contains(t, line, "chmod 600")
	})
	t.Run("of a folder above ours", func(t *testing.T) {
		r := newRig(t)
		r.startRouter()
		dir := filepath.Dir(r.front)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.Chmod(dir, 0o777))
		line := r.failure(r.start())
		require.Contains(t, line, dir)
		require.Contains(t, line, "chmod go-w")
	})
}

func TestAWrongKeyEndsUs(t *testing.T) {
	r := newRig(t)
	router := r.startRouter()
	f := router.File()
	f.Key = append(connfile.Secret{}, f.Key...)
	f.Key[0]++
	require.NoError(t, connfile.Publish(r.router, f))
	line := r.failure(r.start())
	require.Contains(t, line, `"router.connection_file"`)
	require.Contains(t, line, "does not hold this file's key")
}
