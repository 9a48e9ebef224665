package proxy

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/admission"
	"scopeward/proxy/wire"
)

// stage is a small world in the middle of its work: an owner with the live scope
// s, a module that holds one stamped bind (corr 501, pair (3, 1)) and serves one
// route, their opener with an open (corr 7) and a route (5, 1), and a stranger.
func stage(t *testing.T) (*rig, []*end) {
	r := newRig(t)
	o, m, c, stranger := r.module("owner"), r.module("tool", string(admission.CallModes)), r.connect(), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	r.opened(c, m, "s", 1, 5)
	c.fromPeer(frame(wire.Request, 7, openBody(doc{"scope": selector("s", 1)})))
	r.bindTo(c, m, 501, 3, 1)
	require.Equal(t, wire.Request, r.one(m.toPeer()).Type)
	return r, []*end{o, m, c, stranger}
}

// whole requires that what an end wrote one way is frames, the last of them cut
// at most, and returns those that are whole.
func (e *end) whole(d direction) (frames []wire.Header) {
	b := e.written[d].Bytes()
	for {
		h, err := wire.ParseHeader(b)
		if err == wire.ErrShort {
			return frames
		}
		require.NoError(e.r.t, err, "no frame where one begins")
		if len(b) < wire.HeaderLen+int(h.Len) {
			return frames
		}
		frames = append(frames, h)
		b = b[wire.HeaderLen+int(h.Len):]
	}
}

// leave ends everybody. Nothing is held then.
func (r *rig) leave(ends []*end) {
	r.run()
	for _, e := range ends {
		e.s.End("the test ends")
		e.collect()
	}
	r.run()
	n := r.world.Table.Totals()
	require.Zero(r.t, n.Routes+n.Pending+n.Holders, "%+v", n)
	require.Empty(r.t, r.world.opens)
	require.Empty(r.t, r.world.turns.lines)
}

// FuzzSession feeds sessions any bytes from both sides, in pieces of any size:
// each is who and which way, a length, and so many bytes.
func FuzzSession(f *testing.F) {
	piece := func(who, way byte, b []byte) []byte {
		return append(binary.LittleEndian.AppendUint16([]byte{who | way<<2}, uint16(len(b))), b...)
	}
	f.Add(piece(2, 0, conversation()))
	f.Add(piece(0, 0, frame(wire.Request, 9, doc{"op": wire.OpScopeSync, "generation": 2, "scopes": []doc{}})))
	f.Add(bytes.Join([][]byte{
		piece(1, 0, frame(wire.Response, 501, doc{"op": wire.OpRouteBind})),
		piece(2, 1, frame(wire.Response, 7, doc{"op": wire.OpRouteOpen, "route_channel": 6, "route_epoch": 1})),
		piece(2, 0, data(wire.Request, 6, 1, "call")[:9]), piece(1, 1, wire.AppendGoodbye(nil, 3, 1)),
		piece(3, 0, frame(wire.Hello, 1, doc{"manifest": doc{"module_id": "x"}})), piece(3, 1, frame(wire.HelloAck, 1, doc{})),
		piece(2, 0, wire.AppendGoodbye(nil, 0, 0)),
	}, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, ends := stage(t)
		for len(in) >= 3 {
			e, way := ends[in[0]&3], direction(in[0]>>2&1)
			n := min(int(binary.LittleEndian.Uint16(in[1:])), len(in)-3)
			b := in[3 : 3+n]
			in = in[3+n:]
			switch {
			case e.s.Ended():
			case way == toRouter:
				e.fromPeer(b)
			default:
				e.fromRouter(b)
			}
			r.run()
		}
		for _, e := range ends {
			e.collect()
			e.whole(toRouter)
			e.whole(toPeer)
		}
		r.leave(ends)
	})
}

// FuzzControl hands one control frame of any body to one end from one side: who
// and which way. The seeds real-* are what sidecar and real router say to each
// other in the end-to-end story, nonces and marks zeroed. Nothing is answered twice, and no end does more than end.
func FuzzControl(f *testing.F) {
	for _, body := range []string{
		`{"op":"scope.sync","generation":2,"scopes":[{"ref":"s","scope_epoch":1,"kind":"head"}]}`,
		`{"op":"scope.apply","generation":2,"upsert":[],"end":[{"ref":"s","scope_epoch":1}]}`,
		`{"op":"scope.describe","owner":{"kind":"reserved","module_id":"owner"},"ref":"s"}`,
		`{"op":"scope.subscribe","since":{"daemon_incarnation":"00","seq":0},"owners":[{"kind":"reserved","module_id":"owner"}]}`,
		`{"op":"catalog.update","provides":["tool_provider"],"capabilities":{"provides":["call-modes/v1"]},"ready":true}`,
		`{"op":"catalog.list","module_id":"tool"}`, `{"op":"server.describe"}`, `{"op":"health.check"}`,
		`{"op":"route.bind","route_channel":9,"epoch":1,"target":{"kind":"tool_provider","module_id":"tool"},"identity":{"project_root":"/p","harness":"h","session":"s"},"principal":{"kind":"direct"},"consumer_capabilities":["x/v1"]}`,
		`{"op":"route.bind","consumer_capabilities":["` + wire.MarkPrefix + `00"]}`,
		`{"op":"route.open","route_channel":9,"route_epoch":1}`, `{"op":"route.open"}`,
		`{"op":"route.closed","module_id":"tool","channels":[5],"reason":"crash","terminal":false}`,
		`{"manifest":{"module_id":"tool","provides":["tool_provider"],"capabilities":{"provides":[]}},"protocol_ver":2,"launch_nonce":"n"}`,
		`{"negotiated_ver":2,"subc_ops":["catalog.update"],"subc_capabilities":[]}`,
		`{"op":"catalog.list","modules":[{"module_id":"scopeward-probe-1"},{"module_id":"tool"}]}`,
		`{"code":"no","message":"m","detail":{}}`, `{"op":"route.bind"}`, `[]`, `null`, ``,
	} {
		for i, ty := range []wire.Type{wire.Request, wire.Response, wire.Error, wire.Push, wire.Hello, wire.HelloAck} {
			f.Add(byte(i), byte(ty), byte(7), []byte(body))
			f.Add(byte(i+4), byte(ty), byte(7), []byte(body))
		}
	}
	for _, body := range differentialCorpus() {
		f.Add(byte(2), byte(wire.Request), byte(9), []byte(body))
	}
	f.Fuzz(func(t *testing.T, where, ty, corr byte, body []byte) {
		h := wire.Header{Type: wire.Type(ty), Corr: uint64(corr)}
		in := wire.AppendFrame(nil, h, body)
		r, ends := stage(t)
		e, way := ends[where&3], direction(where>>2&1)
		if way == toRouter {
			e.fromPeer(in)
		} else {
			e.fromRouter(in)
		}
		r.run()
		e.collect()
		e.whole(toRouter)
		answers := 0
		for _, f := range e.whole(toPeer) {
			if f.Corr == h.Corr && (f.Type == wire.Response || f.Type == wire.Error || f.Type == wire.HelloAck) {
				answers++
			}
		}
		require.LessOrEqual(t, answers, 1)
		r.leave(ends)
	})
}
