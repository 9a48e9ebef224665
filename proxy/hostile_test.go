package proxy

import (
	"bytes"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// neighbour is a well-behaved opener and the route that it calls on.
func (f *front) neighbour() *routertest.Route {
	f.t.Helper()
	f.owner1().Sync(1, head("s")).OK()
	f.module("tool").Serve()
	return f.client().Open("tool", scope("s"))
}

func (f *front) owner1() *routertest.Module { return f.module("owner") }

// raw is an authenticated connection that nobody reads.
func (f *front) raw() net.Conn {
	f.t.Helper()
	c := f.socket()
	file, err := connfile.Read(f.file)
	require.NoError(f.t, err)
	_, err = handshake.Client(c, file.Key, file.DaemonID, handshake.RoleClient)
	require.NoError(f.t, err)
	return c
}

// socket is a connection that has said nothing.
func (f *front) socket() net.Conn {
	f.t.Helper()
	file, err := connfile.Read(f.file)
	require.NoError(f.t, err)
	c, err := net.Dial("tcp", file.Endpoints[0].Address())
	require.NoError(f.t, err)
	f.t.Cleanup(func() { c.Close() })
	return c
}

// only waits until n pairs of connections are left.
func (f *front) only(n int) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return f.server.Connections() == n }, routertest.Patience, time.Millisecond)
}

// heap is how many bytes are in use now.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// grown requires that the heap has grown by at most bytes since before, and says
// by how much.
func grown(t *testing.T, what string, before, bytes int64) {
	t.Helper()
	now := heap() - before
	t.Logf("%s: the heap has grown by %d KiB", what, now>>10)
	require.Less(t, now, bytes, what)
}

func openFrame(corr uint64, more doc) []byte {
	d := openBody(more)
	d["identity"] = doc{"project_root": "/", "harness": "h", "session": "s"}
	return frame(wire.Request, corr, d)
}

// bytewise sends one byte at a time.
type bytewise struct{ net.Conn }

func (b bytewise) Write(p []byte) (int, error) {
	for i := range p {
		if n, err := b.Conn.Write(p[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(p), nil
}

func TestHostile_OneByteAtATimeIsAsGoodAsAll(t *testing.T) {
	f := newFront(t)
	route := f.neighbour()
	file, err := connfile.Read(f.file)
	require.NoError(t, err)
	c := bytewise{f.socket()}
	_, err = handshake.Client(c, file.Key, file.DaemonID, handshake.RoleClient)
	require.NoError(t, err)
	_, err = c.Write(openFrame(1, doc{"scope": selector("s", 1)}))
	require.NoError(t, err)
	answer, err := wire.ReadFrame(c)
	require.NoError(t, err)
	at, ok := routeOf(answer.Body)
	require.True(t, ok, "%s", answer.Body)
	_, err = c.Write(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Channel: at.channel, Epoch: at.epoch, Corr: 2}, []byte("slowly")))
	require.NoError(t, err)
	answer, err = wire.ReadFrame(c)
	require.NoError(t, err)
	require.Contains(t, string(answer.Body), "slowly")
	require.Contains(t, route.Call("x"), "x")
}

func TestHostile_AControlFrameCutAtEveryOffsetLeavesNothing(t *testing.T) {
	f := newFront(t)
	route := f.neighbour()
	before := f.server.Connections()
	in := openFrame(1, doc{"scope": selector("s", 1)})
	step := 1
	if testing.Short() {
		step = 16
	}
	for n := 0; n < len(in); n += step {
		c := f.raw()
		_, err := c.Write(in[:n])
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	f.only(before)
	n := f.server.World().Table.Totals()
	require.Equal(t, []int{1, 0}, []int{n.Routes, n.Pending})
	require.Contains(t, route.Call("x"), "x")
}

// A half-closed peer has ended: it could read no drain's effect on what it sends.
func TestHostile_AHalfCloseEndsBothSides(t *testing.T) {
	f := newFront(t)
	route := f.neighbour()
	before := f.server.Connections()
	c := f.raw()
	_, err := c.Write(openFrame(1, doc{"scope": selector("s", 1)}))
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	_, err = io.Copy(io.Discard, c)
	require.NoError(t, err, "closed, and not reset")
	f.only(before)
	require.Eventually(t, func() bool { return f.server.World().Table.Totals().Routes == 1 }, routertest.Patience, time.Millisecond)
	require.Contains(t, route.Call("x"), "x")
}

// A header that promises 64 MiB costs nothing until the bytes come, on whatever
// channel.
func TestHostile_APromiseOf64MiBCostsNothing(t *testing.T) {
	f := newFront(t)
	route := f.neighbour()
	before, was := f.server.Connections(), heap()
	const promises = 64
	for i := range promises {
		h := wire.Header{Len: wire.MaxBody, Type: wire.Request, Corr: 1}
		if i%2 == 1 {
			h.Channel, h.Epoch = 3, 1
		}
		_, err := f.raw().Write(append(h.Append(nil), "{"...))
		require.NoError(t, err)
	}
	f.only(before + promises)
	f.until(func(s *Session) bool { return s.lanes[toRouter].left > 0 })
	grown(t, "64 promises of 64 MiB", was, promises*512<<10)
	require.Contains(t, route.Call("x"), "x")
}

// A body of 64 MiB goes through, and one byte more ends the connection.
func TestHostile_64MiBPassAndAByteMoreEndsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB through four processes' worth of buffers")
	}
	f := newFront(t)
	f.owner1().Sync(1, head("s")).OK()
	tool := f.module("tool")
	tool.Serve()
	c := f.client()
	r := c.Open("tool", scope("s"))
	b := tool.NextBind()
	r.Send(wire.Push, 0, 0, bytes.Repeat([]byte{'z'}, wire.MaxBody))
	got := tool.Next()
	require.Equal(t, wire.MaxBody, len(got.Body))
	require.Equal(t, b.Channel, got.Channel)
	other := f.raw()
	h := wire.Header{Type: wire.Push, Channel: r.Channel, Epoch: r.Epoch}.Append(nil)
	h[0], h[3] = 1, 4 // 64 MiB and one
	_, err := other.Write(h)
	require.NoError(t, err)
	_, err = other.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Contains(t, r.Call("x"), "x")
}

func TestHostile_256StuckHandshakesAreCutAndTheirRoomIsFree(t *testing.T) {
	f := newFront(t)
	route := f.neighbour()
	var stuck []net.Conn
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(f.server.slots) < handshake.MaxUnauthenticated {
		if len(stuck) >= handshake.MaxUnauthenticated {
			<-tick.C // they are on their way in, or the first were cut already: more come
		}
		c := f.socket()
		_, _ = c.Write([]byte{9, 0, 0}) // one for which there is no room is closed
		stuck = append(stuck, c)
	}
	late := f.socket()
	_, err := late.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "no room, no wait")
	require.Contains(t, route.Call("x"), "x", "who is in stays in")
	began := time.Now()
	for _, c := range stuck {
		_, _ = io.Copy(io.Discard, c)
	}
	require.Less(t, time.Since(began), 10*handshake.Timeout)
	f.client().Settle()
}

// A peer that asks and never reads is not read from any more: it costs a bound,
// and nobody else anything.
func TestHostile_APeerThatNeverReadsCostsABound(t *testing.T) {
	f := newFront(t)
	route := f.neighbour()
	was := heap()
	c := f.raw()
	ask := bytes.Repeat(frame(wire.Request, 1, doc{"op": wire.OpScopeSync}), 1000) // each refused by us
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
	for sent := 0; sent < 64<<20; {
		n, err := c.Write(ask)
		if sent += n; err != nil {
			t.Logf("it could send %d KiB", sent>>10)
			break
		}
	}
	grown(t, "a peer that never reads", was, 16<<20)
	require.Contains(t, route.Call("x"), "x")
}

// TestHostile_Floods: each flood is bounded in memory, leaves nothing, and the
// neighbour's route works during and after it.
func TestHostile_Floods(t *testing.T) {
	for name, flood := range floods() {
		t.Run(name, func(t *testing.T) {
			f := newFront(t)
			route := f.neighbour()
			was := heap()
			stop := flood(f)
			for range 20 {
				require.Contains(t, route.Call("x"), "x")
			}
			stop()
			grown(t, name, was, 64<<20)
			require.Eventually(t, func() bool { n := f.server.World().Table.Totals(); return n.Pending == 0 }, routertest.Patience, time.Millisecond)
			require.Contains(t, route.Call("x"), "x")
		})
	}
}

// floods are what a hostile peer repeats until it is stopped.
func floods() map[string]func(*front) (stop func()) {
	repeat := func(f *front, b []byte) func() {
		c := f.raw()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
		wg.Go(func() {
			for {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		})
		return func() {
			c.Close()
			wg.Wait()
		}
	}
	many := func(n int, each func(i int) []byte) (all []byte) {
		for i := range n {
			all = append(all, each(i)...)
		}
		return all
	}
	return map[string]func(*front) func(){
		"opens": func(f *front) func() {
			return repeat(f, many(64, func(i int) []byte { return openFrame(uint64(i+1), doc{"scope": selector("s", 1)}) }))
		},
		"refused opens": func(f *front) func() {
			return repeat(f, many(64, func(i int) []byte { return openFrame(uint64(i+1), doc{"scope": selector("none", 1)}) }))
		},
		"goodbyes of unknown routes": func(f *front) func() {
			return repeat(f, many(1000, func(i int) []byte { return wire.AppendGoodbye(nil, uint16(i+1), 7) }))
		},
		"syncs of 10,000 records": func(f *front) func() {
			m := f.module("flood" + strconv.FormatUint(f.server.next.Load(), 10))
			records := make([]any, 10_000)
			for i := range records {
				records[i] = routertest.Doc{"ref": strconv.Itoa(i), "scope_epoch": 1, "kind": "head"}
			}
			quit := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for generation := uint64(1); ; generation++ {
					select {
					case <-quit:
						return
					default:
						m.Sync(generation, records...).OK()
					}
				}
			})
			return func() {
				close(quit)
				wg.Wait()
				m.Close()
			}
		},
	}
}

// TestHostile_IdleConnections: four descriptors each, ours and the test's. The
// number is what the limit of descriptors allows, 10,000 at most;
// SCOPEWARD_IDLE asks for more than a few hundred.
func TestHostile_IdleConnections(t *testing.T) {
	n := 300
	if text := os.Getenv("SCOPEWARD_IDLE"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if room := int(limit.Cur-200) / 4; n > room {
		t.Logf("%d descriptors allow %d of %d connections in one process", limit.Cur, room, n)
		n = room
	}
	f := newFront(t)
	route := f.neighbour()
	before, was := f.server.Connections(), heap()
	for range n {
		f.raw()
	}
	f.only(before + n)
	now := heap() - was
	t.Logf("%d idle connections: %d KiB, %d bytes each, the test's and the stub router's ends with them", n, now>>10, now/int64(n))
	require.Contains(t, route.Call("x"), "x")
}
