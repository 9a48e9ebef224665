package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// A relayed frame costs no allocation, whatever the machine.
func TestRelayAllocatesNothing(t *testing.T) {
	c := newRig(t).connect()
	b := data(wire.Request, 4, 1, "a call of some sixty bytes, as most calls are, or a bit more")
	take := func() {
		for d := range c.s.outs {
			c.s.outs[d].take()
		}
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		c.s.FromPeer(b)
		c.s.FromRouter(b)
		take()
	}))
}

func BenchmarkRelay(b *testing.B) {
	for name, n := range map[string]int{"64B": 64, "64KiB": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			c := newRig(nil).connect()
			frame := data(wire.Request, 4, 1, string(make([]byte, n)))
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				c.s.FromPeer(frame)
				c.s.outs[toRouter].take()
			}
		})
	}
}
