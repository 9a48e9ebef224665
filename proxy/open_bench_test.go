package proxy

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// BenchmarkOpen takes opens from request to answer and to the Goodbye, in memory:
// what both sessions and the table do for one open, and nothing of the sockets.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name string
		more doc
	}{
		{"unscoped", nil},
		{"scoped", doc{"scope": selector("a", 1)}},
	} {
		b.Run(c.name, func(b *testing.B) { benchOpen(b, c.more) })
	}
}

func benchOpen(b *testing.B, more doc) {
	r := newRig(b)
	owner := r.module("owner")
	owner.sync(1, record("a", 1, directCarrier))
	m, c := r.module("tool", wire.CapScopes), r.connect()
	open := frame(wire.Request, 7, openBody(more))
	ack := frame(wire.Response, 8, doc{"op": wire.OpRouteBind})
	answer := frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 5, "route_epoch": 1})
	goodbye := wire.AppendGoodbye(nil, 5, 1)
	bind := doc{"op": wire.OpRouteBind, "route_channel": 6, "epoch": 1, "target": openBody(nil)["target"],
		"identity": openBody(nil)["identity"], "principal": doc{"kind": "direct"}}
	mark := []byte(nil)
	if more != nil {
		bind["consumer_capabilities"] = []string{newMark()}
	}
	binding := frame(wire.Request, 8, bind)
	if at := bytes.Index(binding, []byte(wire.MarkPrefix)); at >= 0 {
		mark = binding[at : at+len(newMark())]
	}
	take := func(s *Session) (n int) {
		for d := range s.outs {
			segs, _ := s.outs[d].take()
			n += len(segs)
		}
		return n
	}
	b.ReportAllocs()
	for b.Loop() {
		c.s.FromPeer(open)
		if mark != nil {
			sent := c.s.outs[toRouter].segs[0]
			copy(mark, sent[bytes.Index(sent, []byte(wire.MarkPrefix)):])
		}
		frames := take(c.s)
		m.s.FromRouter(binding)
		frames += take(m.s)
		m.s.FromPeer(ack)
		frames += take(m.s)
		c.s.FromRouter(answer)
		frames += take(c.s)
		c.s.FromPeer(goodbye)
		m.s.FromRouter(wire.AppendGoodbye(nil, 6, 1))
		frames += take(c.s) + take(m.s)
		if frames < 6 {
			b.Fatalf("%d frames came through, not 6", frames)
		}
		r.seen = r.seen[:0]
	}
	require.Empty(b, c.s.routes, fmt.Sprint(c.s.reason))
}
