package e2e

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"
	"scopeward/sidecar/operator/api"

	"github.com/stretchr/testify/require"
)

// TestRoutersFileSpoilt: whatever becomes of the router's connection file, the
// sidecar that is attached stays so, and comes back with the next router.
func TestRoutersFileSpoilt(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t)
	tr.sync(record("s", 1))
	r := tr.mustOpen("s")
	good, err := os.ReadFile(tr.routerFile())
	require.NoError(t, err)
	file, err := connfile.Read(tr.routerFile())
	require.NoError(t, err)
	file.Key = append(connfile.Secret{}, file.Key...)
	file.Key[0]++
	for name, spoil := range map[string]func() error{
		"truncated":           func() error { return os.Truncate(tr.routerFile(), 0) },
		"cut":                 func() error { return os.Truncate(tr.routerFile(), int64(len(good)/2)) },
		"replaced":            func() error { return connfile.Publish(tr.routerFile(), file) },
		"made world-readable": func() error { return os.Chmod(tr.routerFile(), 0o644) },
		"deleted":             func() error { return os.Remove(tr.routerFile()) },
	} {
		require.NoError(t, spoil(), name)
		require.Equal(t, wire.Response, tr.opener.call(r, object{"n": "2"}).Type, name)
		client := tr.client()
		f := client.request(object{"op": wire.OpServerDescribe})
		require.Equal(t, wire.Response, f.Type, "a new connection, the file %s", name)
		client.close()
		require.False(t, tr.sidecar.ended(), name)
		tr.write(tr.routerFile(), good)
	}
	require.Len(t, tr.agree("afterwards"), 1)

	require.NoError(t, os.Chmod(tr.routerFile(), 0o644))
	tr.router.stop(syscall.SIGKILL, patience)
	within(t, patience, "our file to be withdrawn", func() bool {
		_, err := os.Stat(tr.frontFile())
		return os.IsNotExist(err)
	})
	require.False(t, tr.sidecar.ended())
	require.NoError(t, os.Remove(tr.routerFile()))
	tr.launchRouter()
	tr.gather(backLimit)
	tr.sync(record("s", 1))
	tr.mustOpen("s")
	require.Len(t, tr.agree("after a restart"), 1)
}

// TestOurFileSpoilt: nobody may be led past us by the file at our path. Deleted
// it is put back; anything else in its place ends the sidecar with a line that
// names it, and one that is started when it is gone heals.
func TestOurFileSpoilt(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t)
	require.NoError(t, os.Remove(tr.frontFile()))
	tr.waitDial(tr.frontFile(), tr.sidecar)
	for name, spoil := range map[string]func() error{
		"truncated":           func() error { return os.Truncate(tr.frontFile(), 0) },
		"replaced":            func() error { tr.write(tr.frontFile(), []byte("{}")); return nil },
		"made world-readable": func() error { return os.Chmod(tr.frontFile(), 0o644) },
	} {
		written := len(tr.sidecar.output())
		require.NoError(t, spoil(), name)
		within(t, patience, "the sidecar to end, its file "+name, tr.sidecar.ended)
		require.NotZero(t, tr.sidecar.cmd.ProcessState.ExitCode(), name)
		require.Contains(t, lastLines(tr.sidecar.output()[written:]), tr.frontFile(), name)
		os.Remove(tr.frontFile())
		tr.launchSidecar()
		tr.gather(backLimit)
		tr.sync(record("s", 1))
		tr.mustOpen("s")
	}
}

// TestRouterUpgraded: the router's program is replaced by one that serves scopes
// itself, and restarted. The sidecar lets it, and everything goes on.
func TestRouterUpgraded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	bin := w.path("bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	program := filepath.Join(bin, progRouter)
	place(t, w.program, program)
	w.program = program
	w.play(idOwner, syncStep(1, record("s", 1)))
	w.start()
	w.waitSynced(idOwner, 1)
	requireEcho(t, w)
	require.Equal(t, "sidecar", w.status().Scopes)

	place(t, nativeRouter(t), program)
	requireEcho(t, w) // the old program runs on
	w.restartParty(partyRouter, false)
	within(t, backLimit, "the new router", func() bool { return w.status().Router.Version == "0.36.15" })
	w.waitModules(backLimit)
	w.waitSynced(idOwner, 2)
	require.Equal(t, "router", w.status().Scopes)
	within(t, patience, "a scoped call", func() bool { return w.scopedEcho() == nil })
	requireEcho(t, w)
	w.play(idOwner, syncStep(1))
	w.restart(idOwner)
	w.waitSynced(idOwner, 3)
	_, refused := w.client().open(w.scoped(idEcho, "s", 1))
	require.NotNil(t, refused)
	require.Equal(t, "scope_not_live", refused.Code)
}

// nativeRouter is a router that serves scopes itself, built by the oracle.
func nativeRouter(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ORACLE_CACHE")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "scopeward-oracle")
	}
	path := filepath.Join(dir, "subc-0.36.15")
	_, err := os.Stat(path)
	require.NoError(t, err, "build the oracle's routers: .ci/builds/oracle.sh")
	return path
}

// place puts a copy of a program at a path, under whatever runs from there.
func place(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	syscall.ForkLock.RLock() // who is forked meanwhile would have it open: it is busy then
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.NoError(t, os.Rename(to+".new", to))
}

func (w *world) status() api.Status {
	w.t.Helper()
	client := api.NewClient(w.socket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := client.Status(ctx)
	require.NoError(w.t, err)
	return status
}
