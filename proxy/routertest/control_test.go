package routertest

import (
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

func TestQ10_ControlOddities(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		m := r.module("tool")
		c := r.client()
		type got struct {
			Type wire.Type
			Corr uint64
			Code string
		}
		script := func(p *Peer) {
			p.Send(wire.Header{Type: wire.Ping, Corr: 177}, nil)
			p.Send(wire.Header{Type: wire.Pong, Corr: 178}, nil)
			p.Send(wire.Header{Type: wire.Cancel, Corr: 179}, nil)
			p.Send(wire.Header{Type: wire.Push}, []byte(`{"op":"nope"}`))
			p.Send(wire.Header{Type: wire.Response, Corr: 180}, []byte(`{}`))
			p.Send(wire.Header{Type: wire.StreamData, Corr: 181}, []byte(`{}`))
			p.Send(wire.Header{Type: wire.StreamEnd, Corr: 182}, nil)
			p.Send(wire.Header{Type: wire.HelloAck, Corr: 183}, nil)
			p.Settle()
		}
		drain := func(p *Peer) (all []got) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, f := range p.inbox {
				require.Zero(t, f.Flags)
				all = append(all, got{f.Type, f.Corr, Reply{p, f}.Code()})
			}
			p.inbox = nil
			return all
		}
		script(c.Peer)
		require.Equal(t, []got{
			{wire.Pong, 177, ""},
			{wire.Error, 178, "unsupported_control_frame"},
			{wire.Error, 179, "unknown_subscription"},
			{wire.Error, 0, "unsupported_control_frame"},
			{wire.Error, 180, "unsupported_control_frame"},
			{wire.Error, 181, "unsupported_control_frame"},
			{wire.Error, 182, "unsupported_control_frame"},
			{wire.Error, 183, "unsupported_control_frame"},
		}, drain(c.Peer))
		script(m.Peer)
		require.Equal(t, []got{
			{wire.Pong, 177, ""},
			{wire.Error, 178, "unsupported_control_frame"},
			{wire.Error, 179, "unknown_subscription"},
			{wire.Error, 180, "invalid_control_body"},
			{wire.Error, 181, "unsupported_control_frame"},
			{wire.Error, 182, "unsupported_control_frame"},
			{wire.Error, 183, "unsupported_control_frame"},
		}, drain(m.Peer))

		for body, code := range map[string]string{
			`{"op":"no.such"}`: "unknown_control_op", `{"op":5}`: "invalid_control_body", `x`: "invalid_control_body",
			``: "invalid_control_body", `{"op":"supervisor.live_roots"}`: "not_registered", `{"op":"route.closing"}`: "invalid_control_body",
		} {
			c.Ask([]byte(body)).Refused(code)
		}
		for _, body := range []string{`{"op":"no.such"}`, `{"op":5}`, `x`, ``, `{"op":"route.open"}`, `{"op":"server.describe"}`, `{"op":"scope.sync"}`} {
			m.Ask([]byte(body)).Refused("unsupported_control_frame")
		}
		m.Ask(Doc{"op": "supervisor.live_roots"}).OK()
		// corr 0 is answered with 0.
		c.Send(wire.Header{Type: wire.Request}, []byte(`{"op":"server.describe"}`))
		f := c.Next()
		require.Equal(t, wire.Response, f.Type)
		require.Zero(t, f.Corr)
	})
}

func TestQ10_HeadersThatEndTheConnection(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, r *rig) {
		describe := []byte(`{"op":"server.describe"}`)
		whole := func(h wire.Header, body []byte) []byte { return wire.AppendFrame(nil, h, body) }
		versioned := func(v byte) []byte {
			b := whole(wire.Header{}, describe)
			b[4] = v
			return b
		}
		for name, bytes := range map[string][]byte{
			"type 12":            whole(wire.Header{Type: 12}, describe),
			"type 200":           whole(wire.Header{Type: 200}, nil),
			"priority 3":         whole(wire.Header{Flags: 0x06}, describe),
			"class 3":            whole(wire.Header{Flags: 0x30}, describe),
			"sheddable request":  whole(wire.Header{Flags: 0x20}, describe),
			"epoch on channel 0": whole(wire.Header{Epoch: 1}, describe),
			"version 1":          versioned(1),
			"version 3":          versioned(3),
			"version 1, short":   {0, 0, 0, 0, 1},
			"ping with body":     whole(wire.Header{Type: wire.Ping}, []byte("xx")),
			"oversize":           wire.Header{Len: wire.MaxBody + 1}.Append(nil),
		} {
			t.Run(name, func(t *testing.T) {
				c := r.client()
				c.SendRaw(bytes)
				c.Ended()
				require.Empty(t, c.inbox)
			})
		}
		for _, flags := range []wire.Flags{wire.FlagSubscription, wire.FlagDaemon, wire.FlagBinary, wire.FlagLast} {
			c := r.client()
			c.Send(wire.Header{Type: wire.Request, Flags: flags, Corr: 9}, describe)
			require.Equal(t, wire.Response, c.Next().Type)
		}
	})
}
