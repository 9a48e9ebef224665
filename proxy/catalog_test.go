package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

func TestACatalogHidesOurHelpersAndNothingElse(t *testing.T) {
	const helper = `{"module_id":"scopeward-probe-00ff","roles":[]}`
	for name, c := range map[string]struct{ body, want string }{
		"first":     {`{"op":"catalog.list","generation":3,"modules":[` + helper + `, {"module_id" : "a"}],"x":1}`, `{"op":"catalog.list","generation":3,"modules":[{"module_id" : "a"}],"x":1}`},
		"alone":     {`{"op":"catalog.list","modules":[` + helper + `]}`, `{"op":"catalog.list","modules":[]}`},
		"none":      {`{ "op":"catalog.list","modules":[ ] }`, ""},
		"elsewhere": {`{"op":"catalog.list","modules":[{"module_id":"a","note":"scopeward-probe-"}]}`, `{"op":"catalog.list","modules":[{"module_id":"a","note":"scopeward-probe-"}]}`},
		"no object": {`["scopeward-probe-"]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			client := r.connect()
			frame := func(body string) []byte {
				return wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: 9}, []byte(body))
			}
			client.fromPeer(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 9}, []byte(`{"op":"catalog.list"}`)))
			client.collect()
			client.written[toPeer].Reset()
			client.fromRouter(frame(c.body))
			client.collect()
			want := c.want
			if want == "" {
				want = c.body
			}
			require.Equal(t, string(frame(want)), client.written[toPeer].String())
		})
	}
}
