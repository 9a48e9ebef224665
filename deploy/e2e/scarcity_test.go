package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"scopeward/proxy/connfile"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestDescriptorsExhausted: a sidecar that can open no descriptor more goes on
// with what it has, and takes connections again once some are closed.
func TestDescriptorsExhausted(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t)
	tr.sync(record("s", 1))
	r := tr.mustOpen("s")
	before := tr.mustFootprint()
	tr.limit(unix.RLIMIT_NOFILE, uint64(before.descriptors+8))

	front, err := connfile.Read(tr.frontFile())
	require.NoError(t, err)
	var idle []net.Conn
	for range 64 {
		conn, err := net.Dial("tcp", front.Endpoints[0].Address())
		require.NoError(t, err)
		idle = append(idle, conn)
	}
	within(t, patience, "the descriptors to be used up", func() bool {
		n, err := descriptors(tr.sidecar.cmd.Process.Pid)
		return err == nil && n >= before.descriptors+6
	})
	require.Equal(t, wire.Response, tr.opener.call(r, object{"n": "2"}).Type, "a live route")
	require.Equal(t, wire.Response, tr.opener.await(tr.asked("s")).Type, "an open on a connection that is there")
	for _, conn := range idle {
		conn.Close()
	}
	within(t, patience, "a new connection", func() bool {
		conn, err := dialFile(tr.frontFile())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	tr.gather(backLimit)
	tr.sync()
	require.Empty(t, tr.agree("without a scope"))
	tr.sync(record("s", 2))
	require.False(t, tr.sidecar.ended())
	before.totals.Routes = 0
	tr.returned(before)
}

// TestMemoryExhausted: a sidecar that gets no memory ends at once, with an exit
// status that says so, and the next one heals everything.
func TestMemoryExhausted(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t)
	tr.sync(record("s", 1))
	tr.mustOpen("s")
	tr.limit(unix.RLIMIT_AS, virtual(t, tr.sidecar.cmd.Process.Pid)+16<<20)

	var senders sync.WaitGroup
	body := bytes.Repeat([]byte(" "), wire.MaxBody)
	for range 4 {
		conn, err := dialFile(tr.frontFile())
		if err != nil {
			break
		}
		defer conn.Close()
		senders.Go(func() { conn.Write(wire.AppendFrame(nil, wire.Header{Corr: 1}, body)) })
	}
	within(t, patience, "the sidecar to end", tr.sidecar.ended)
	senders.Wait()
	require.NotZero(t, tr.sidecar.cmd.ProcessState.ExitCode())
	require.Contains(t, string(tr.sidecar.output()), "out of memory")

	tr.launchSidecar()
	tr.gather(backLimit)
	tr.sync(record("s", 1))
	tr.mustOpen("s")
	require.NotEmpty(t, tr.agree("after the restart"))
}

// TestDiskFull: decisions do not wait for a disk that is full. What the ledger
// could not write is written when there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t, func(w *world) {
		require.NoError(t, unix.Mount("tmpfs", w.path("side"), "tmpfs", 0, "size=512k,mode=700"))
		t.Cleanup(func() { unix.Unmount(w.path("side"), unix.MNT_DETACH) })
		w.write(w.path("side/config.jsonc"), wire.MustMarshal(object{
			"version": 1, "router": object{"connection_file": w.routerFile()}, "connection_file": w.frontFile(),
			"ledger": object{"path": w.path("side/ledger")},
		}))
	})
	tr.sync(record("s", 1))
	tr.mustOpen("s")
	ballast := tr.path("side/ballast")
	fill(t, ballast)

	for i := range 4 {
		var set []object
		for j := range 64 {
			set = append(set, record(fmt.Sprintf("full-%d-%d", i, j), 1))
		}
		tr.sync(append(set, record("s", 1))...)
		tr.mustOpen("s")
	}
	within(t, patience, "a word to the operator", func() bool {
		return strings.Contains(string(tr.sidecar.output()), "no space left on device")
	})
	tr.part(partyOpener)
	tr.part(party(idProvider))
	tr.gather(patience)
	tr.mustOpen("s")

	require.NoError(t, os.Remove(ballast))
	tr.sync()
	require.Empty(t, tr.agree("without a scope"))
	require.True(t, tr.sidecar.stop(syscall.SIGTERM, patience))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, command := range [][]string{{"verify"}, {"show", idOwner, "full-3-63"}} {
		args := append(append([]string{"ledger"}, command...), "--ledger", tr.path("side/ledger"))
		out, err := exec.CommandContext(ctx, scopeward(t), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotEmpty(t, out, "what was decided on the full disk is in the ledger")
	}

	fill(t, ballast)
	tr.launchSidecar()
	within(t, patience, "a sidecar that starts on a full disk to serve or to end", func() bool {
		_, err := dialFile(tr.frontFile())
		return err == nil || tr.sidecar.ended()
	})
	require.NoError(t, os.Remove(ballast))
	if tr.sidecar.ended() {
		require.NotZero(t, tr.sidecar.cmd.ProcessState.ExitCode())
		tr.launchSidecar()
	}
	tr.gather(backLimit)
	tr.sync(record("s", 1))
	tr.mustOpen("s")
}

// limit sets a limit of the running sidecar.
func (w *world) limit(resource int, n uint64) {
	w.t.Helper()
	require.NoError(w.t, unix.Prlimit(w.sidecar.cmd.Process.Pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil))
}

// virtual is a process's address space, bytes.
func virtual(t *testing.T, pid int) uint64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	var pages uint64
	_, err = fmt.Sscan(string(statm), &pages)
	require.NoError(t, err)
	return pages * uint64(os.Getpagesize())
}

// fill writes a file until its file system is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			return
		}
	}
}
