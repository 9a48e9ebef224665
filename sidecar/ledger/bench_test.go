package ledger

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"scopeward/table"
)

// size is the contract's most live scopes of one owner.
const size = table.MaxLiveScopes

// bodies are a sync's body for each content that a scope goes through.
func bodies(epochs, contents int) [][]byte {
	var list [][]byte
	for epoch := range epochs {
		for content := range contents {
			records := make([]string, size)
			for i := range records {
				records[i] = record(fmt.Sprintf("session-%08d", i), uint64(epoch+1), "aft", fmt.Sprint("m", content), "plexus")
			}
			list = append(list, []byte(syncBody(0, records...)))
		}
	}
	return list
}

// caller does what the proxy does with a call, with and without a ledger.
type caller struct {
	table  *table.Table
	ledger *Ledger // nil: off
	gen    uint64
	reply  []byte
	took   []time.Duration
}

func newCaller(b *testing.B, on bool) *caller {
	c := &caller{}
	cfg := table.Config{AuthorityOwners: []string{"core"}}
	if on {
		l, err := Open(Params{Path: newRigPath(b), Log: zap.NewNop(), Wait: 5 * time.Millisecond})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, l.Close(context.Background())) })
		c.ledger, cfg.Journal = l, l
	}
	c.table = table.New(cfg)
	c.table.Join(peerOf("core"))
	return c
}

func (c *caller) sync(b *testing.B, body []byte) {
	c.gen++
	body = slices.Concat([]byte(fmt.Sprintf(`{"generation":%d,`, c.gen)), body[len(`{"op":"scope.sync","generation":0,`):])
	start := time.Now()
	call, refused := table.DecodeSync(body)
	require.Nil(b, refused)
	a, refused := c.table.Sync(table.Claim{Peer: peerOf("core"), Owner: "core", Launch: 1, Current: true}, call, start.UnixMilli())
	require.Nil(b, refused)
	if c.ledger != nil {
		c.ledger.Settle()
	}
	c.reply = a.AppendReply(c.reply[:0])
	c.took = append(c.took, time.Since(start))
	if c.ledger != nil {
		require.True(b, c.ledger.await(time.Minute)) // the disk's time is not the call's
	}
}

// compare reports the same work without and with a ledger, taken in turn: the
// least time of each, which a busy machine disturbs least, and their ratio.
func compare(b *testing.B, off, on *caller, turn func(*caller)) {
	off.took, on.took = nil, nil
	for b.Loop() {
		runtime.GC() // neither pays for what the other, or the writer, left
		turn(off)
		runtime.GC()
		turn(on)
	}
	x, y := float64(slices.Min(off.took)), float64(slices.Min(on.took))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(x/1e6, "off-ms")
	b.ReportMetric(y/1e6, "on-ms")
	b.ReportMetric(y/x, "on/off")
	if on.ledger != nil {
		require.Zero(b, on.ledger.Stats().Lost)
	}
}

// A sync of 10,000 records: the target is 1.3 of off at most.
func BenchmarkSync10000(b *testing.B) {
	for _, c := range []struct {
		name             string
		epochs, contents int
	}{{"unchanged", 1, 1}, {"updated", 1, 2}, {"replaced", 40, 1}} {
		b.Run(c.name, func(b *testing.B) {
			list := bodies(c.epochs, c.contents)
			off, on := newCaller(b, false), newCaller(b, true)
			off.sync(b, list[0])
			on.sync(b, list[0])
			n := 0
			next := func() []byte { return list[(n/2)%len(list)] }
			if c.epochs > 1 {
				next = func() []byte { return list[min(n/2+1, len(list)-1)] }
			}
			compare(b, off, on, func(c *caller) {
				c.sync(b, next())
				n++
			})
		})
	}
}

// The first sync after a start, of 10,000 records that the ledger does not know.
func BenchmarkFirstSync10000(b *testing.B) {
	body := bodies(1, 1)[0]
	var off, on caller
	compare(b, &off, &on, func(c *caller) {
		fresh := newCaller(b, c == &on)
		fresh.sync(b, body)
		c.took = append(c.took, fresh.took...)
	})
}

// An admission and its commit beside 10,000 scopes: the target is 1.05 of off at
// most.
func BenchmarkAdmission(b *testing.B) {
	body := bodies(1, 1)[0]
	off, on := newCaller(b, false), newCaller(b, true)
	opener, module := table.Peer{Conn: 900}, table.Peer{Conn: 901}
	for _, c := range []*caller{off, on} {
		c.sync(b, body)
		c.table.Join(opener)
		c.table.Join(module)
	}
	r := table.Reservation{
		Scope:     scope("core", "session-00000042", 1).Key,
		Opener:    opener,
		Principal: table.ReservedPrincipal("aft"),
		Module:    "tool",
		Provider:  module,
	}
	compare(b, off, on, func(c *caller) {
		const many = 1000
		start := time.Now()
		for range many {
			id, _, ok := c.table.Reserve(r, func(s table.State) bool { return s.Live.Record.Permits(r.Principal, r.Module) })
			if !ok || c.table.Commit(id) != table.Committed || !c.table.Release(id) {
				b.Fatal("not admitted")
			}
		}
		c.took = append(c.took, time.Since(start)/many)
	})
}
