package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// conversation is a long talk without scopes between one client and one module,
// each waiting for the other so that there is one order of frames only.
type conversation struct {
	t      *testing.T
	file   string // the connection file that everybody dials
	root   string // an existing project root
	client *link
	module *link
	corr   uint64
	sent   int   // frames written on either side
	last   bound // the route that was opened last

	// The router may send a module a Goodbye when it pleases: for a bind that was
	// answered very quickly, and for a route on which late frames came. Those have
	// no place in the order of the talk.
	heard int          // frames that the module got
	stray map[int]bool // which of them are such Goodbyes
}

// told is what a conversation left behind.
type told struct {
	client, module []wire.Frame // what each of them got, strays left out
	sent           int          // frames that were sent
}

// converse plays the whole conversation through file.
func converse(t *testing.T, file, root string) told {
	c := &conversation{t: t, file: file, root: root, stray: map[int]bool{}}
	c.module = newLink(t, file, nil)
	c.client = newLink(t, file, nil)
	for _, part := range []struct {
		name string
		play func()
	}{
		{"registration", func() { c.register("tool") }},
		{"control ops", c.control},
		{"opens", func() { c.opens("tool") }},
		{"calls", func() { c.calls(c.mustOpen("tool")) }},
		{"module requests", c.moduleOps},
		{"Goodbye on channel 0 by the module", c.reregister},
		{"a second registration", func() { c.calls(c.mustOpen("tool-2")) }},
		{"Goodbye on channel 0 by the client", c.clientLeaves},
		{"fatal frames", c.fatal},
	} {
		require.True(t, t.Run(part.name, func(t *testing.T) {
			c.t, c.client.t, c.module.t = t, t, t
			part.play()
		}))
		c.t, c.client.t, c.module.t = t, t, t
	}
	c.client.close()
	c.module.close()
	result := told{client: frames(t, c.client.record.Bytes()), sent: c.sent}
	for i, f := range frames(t, c.module.record.Bytes()) {
		unheard := i >= c.heard && f.Type == wire.Goodbye && f.Channel != 0
		if !c.stray[i] && !unheard {
			result.module = append(result.module, f)
		}
	}
	return result
}

// hear is the module's next frame that is no Goodbye on a route.
func (c *conversation) hear() wire.Frame {
	c.t.Helper()
	for {
		f := c.module.next()
		c.heard++
		if f.Type != wire.Goodbye || f.Channel == 0 {
			return f
		}
		c.stray[c.heard-1] = true
	}
}

// hearGoodbye waits for the Goodbye that closes r at the module.
func (c *conversation) hearGoodbye(r bound) {
	c.t.Helper()
	for {
		f := c.module.next()
		c.heard++
		require.Equal(c.t, wire.Goodbye, f.Type, "%+v", f.Header)
		if (route{f.Channel, f.Epoch}) == r.module {
			return
		}
		c.stray[c.heard-1] = true
	}
}

// bound is one route in both spaces.
type bound struct{ client, module route }

func (c *conversation) send(l *link, h wire.Header, body []byte) {
	l.send(h, body)
	c.sent++
}

// ask has the client send a control frame and wait for one frame.
func (c *conversation) ask(ty wire.Type, body string) wire.Frame {
	c.t.Helper()
	c.corr++
	c.send(c.client, wire.Header{Type: ty, Corr: c.corr}, []byte(body))
	return c.client.next()
}

func (c *conversation) register(id string) {
	c.corr++
	c.send(c.module, wire.Header{Type: wire.Hello, Corr: c.corr}, helloBody(id))
	require.Equal(c.t, wire.HelloAck, c.hear().Type)
}

func (c *conversation) control() {
	for _, body := range []string{
		`{"op":"server.describe"}`, `{"op":"catalog.list","module_id":"tool"}`, ` { "op" : "server.describe", "more":[1,{}] } `,
		`{"op":"no.such.op"}`, `{"op":"scopes.sync"}`, `{"op":1}`, `{}`, `null`, `"x"`, `{"op":"server.describe"`, `{"op":"server.describe"}x`, ``,
		`{"op":"route.poll","route_channel":1,"route_epoch":1,"kind":"status"}`, `{"op":"supervisor.spawn_subscribe","since":{"daemon_incarnation":"x","seq":0}}`,
		`{"op":"supervisor.restart","module_id":"nobody"}`,
	} {
		c.ask(wire.Request, body)
	}
	for _, ty := range []wire.Type{wire.Pong, wire.Response, wire.Error, wire.StreamData, wire.StreamEnd, wire.HelloAck, wire.Push} {
		body := "{}"
		if ty == wire.Pong {
			body = ""
		}
		require.Equal(c.t, wire.Error, c.ask(ty, body).Type, "%v", ty)
	}
	require.Equal(c.t, wire.Error, c.ask(wire.Cancel, "").Type)
	require.Equal(c.t, wire.Pong, c.ask(wire.Ping, "").Type)
	require.Equal(c.t, wire.Error, c.ask(wire.Hello, `{}`).Type)
	c.send(c.module, wire.Header{Type: wire.Ping, Corr: 77}, nil)
	require.Equal(c.t, wire.Pong, c.hear().Type)
}

// opening is the text of a route.open with more members.
func (c *conversation) opening(id, more string) string {
	return fmt.Sprintf(`{"op":"route.open","target":{"kind":"tool_provider","module_id":%q},"identity":{"project_root":%q,"harness":"e2e","session":"s"}%s}`, id, c.root, more)
}

// opens plays opens that the router refuses, that the module refuses, and that
// end as routes with a Goodbye from either side.
func (c *conversation) opens(id string) {
	for _, body := range []string{
		c.opening("nobody", ""), c.opening(id, `,"consumer_capabilities":"x"`), c.opening(id, `,"consumer_identity":{"module_id":"x","launch_nonce":"y"}`),
		strings.Replace(c.opening(id, ""), "tool_provider", "management_surface", 1), strings.Replace(c.opening(id, ""), "tool_provider", "zzz", 1),
		strings.Replace(c.opening(id, ""), c.root, "", 1), `{"op":"route.open"}`,
	} {
		require.Equal(c.t, wire.Error, c.ask(wire.Request, body).Type, "%s", body)
	}
	for _, refusal := range []string{`{"code":"x","message":"m","detail":[1,{"a":null}],"more":1}`, `{"code":"scope_ended","message":"mine"}`} {
		bind := c.bind(c.opening(id, ""))
		c.send(c.module, wire.Header{Type: wire.Error, Corr: bind.Corr}, []byte(refusal))
		require.Equal(c.t, wire.Error, c.client.next().Type)
	}
	for i, more := range []string{
		"", `,"consumer_capabilities":null`, `,"consumer_capabilities":[]`, `,"consumer_capabilities":["a","a","ä",""]`, `,"call_mode":"codemode"`,
		`,"unknown":{"deep":[[[]]]},"unknown":2`, `,"scope":null`, `,"role_versions":{"tool_provider":"1"}`,
	} {
		r := c.bindAndAck(c.opening(id, more), []string{`{"op":"route.bind"}`, ` {"op":"route.bind","more":1} `, `["route.bind"]`}[i%3])
		c.call(r, 0, []byte("first"))
		if i%2 == 0 {
			c.send(c.client, wire.Header{Type: wire.Goodbye, Channel: r.client.Channel, Epoch: r.client.Epoch}, nil)
			c.hearGoodbye(r)
			c.corr++
			c.send(c.client, wire.Header{Channel: r.client.Channel, Epoch: r.client.Epoch, Corr: c.corr}, []byte("late"))
			require.Equal(c.t, wire.Error, c.client.next().Type)
			continue
		}
		c.send(c.module, wire.Header{Type: wire.Goodbye, Channel: r.module.Channel, Epoch: r.module.Epoch}, nil)
		require.Equal(c.t, wire.Goodbye, c.client.next().Type)
	}
}

// bind has the client send an open and returns the bind that the module is sent.
func (c *conversation) bind(open string) wire.Frame {
	c.t.Helper()
	c.corr++
	c.send(c.client, wire.Header{Corr: c.corr, Flags: wire.FlagInteractive}, []byte(open))
	bind := c.hear()
	require.Equal(c.t, wire.Request, bind.Type, "%+v", bind.Header)
	return bind
}

// bindAndAck opens a route, the module answering the bind with ack.
func (c *conversation) bindAndAck(open, ack string) bound {
	c.t.Helper()
	bind := c.bind(open)
	at := decode[struct {
		Channel uint16 `json:"route_channel"`
		Epoch   uint32 `json:"epoch"`
	}](c.t, bind)
	c.send(c.module, wire.Header{Type: wire.Response, Corr: bind.Corr}, []byte(ack))
	f := c.client.next()
	require.Equal(c.t, wire.Response, f.Type, "%s", f.Body)
	c.last = bound{client: *decode[route](c.t, f), module: route{at.Channel, at.Epoch}}
	return c.last
}

func (c *conversation) mustOpen(id string) bound {
	c.t.Helper()
	return c.bindAndAck(c.opening(id, ""), `{"op":"route.bind"}`)
}

// call sends a request on r and has the module answer it with its body.
func (c *conversation) call(r bound, flags wire.Flags, body []byte) {
	c.t.Helper()
	f := c.deliver(r, flags, body)
	c.send(c.module, wire.Header{Type: wire.Response, Flags: flags, Channel: r.module.Channel, Epoch: r.module.Epoch, Corr: f.Corr}, f.Body)
	require.Equal(c.t, wire.Response, c.client.next().Type)
}

// deliver sends a request on r and returns it as the module gets it.
func (c *conversation) deliver(r bound, flags wire.Flags, body []byte) wire.Frame {
	c.t.Helper()
	c.corr++
	c.send(c.client, wire.Header{Flags: flags, Channel: r.client.Channel, Epoch: r.client.Epoch, Corr: c.corr}, body)
	f := c.hear()
	require.Equal(c.t, wire.Request, f.Type, "on %+v came %+v", r, f.Header)
	return f
}

// calls plays everything that happens on a route.
func (c *conversation) calls(r bound) {
	for _, size := range []int{0, 1, 20, 21, 22, 4096, 65515, 65536, 262144, 1 << 20, 8 << 20} {
		c.call(r, wire.FlagInteractive, bytes.Repeat([]byte("scopeward"), size/9+1)[:size])
	}
	all := []wire.Flags{0, wire.FlagBinary, wire.FlagInteractive, wire.FlagBackground, wire.FlagLast, wire.FlagExpedite, wire.FlagDaemon, wire.FlagSubscription}
	for i := range 600 {
		c.call(r, all[i%len(all)], fmt.Appendf(nil, "call %d", i))
	}

	f := c.deliver(r, 0, []byte("to be cancelled"))
	c.send(c.client, wire.Header{Type: wire.Cancel, Channel: r.client.Channel, Epoch: r.client.Epoch, Corr: c.corr}, nil)
	require.Equal(c.t, wire.Cancel, c.hear().Type)
	c.answer(r, wire.Error, 0, f.Corr, `{"code":"cancelled","message":"m","detail":{"a":[1]}}`)

	f = c.deliver(r, wire.FlagSubscription, []byte("to be streamed"))
	for i := range 40 {
		c.answer(r, wire.StreamData, wire.FlagSubscription, f.Corr, fmt.Sprint("item ", i))
	}
	c.answer(r, wire.StreamEnd, wire.FlagLast, f.Corr, "")
	for i := range 40 {
		c.answer(r, wire.Push, all[i%len(all)], 0, fmt.Sprint("push ", i))
	}

	// A request of the module's on the route, answered by the client.
	for i := range 10 {
		c.answer(r, wire.Request, 0, uint64(1000+i), "ask")
		c.send(c.client, wire.Header{Type: wire.Response, Channel: r.client.Channel, Epoch: r.client.Epoch, Corr: uint64(1000 + i)}, []byte("told"))
		require.Equal(c.t, wire.Response, c.hear().Type)
	}

	// A wrong epoch is answered; a route.status can be polled.
	c.corr++
	c.send(c.client, wire.Header{Channel: r.client.Channel, Epoch: r.client.Epoch + 7, Corr: c.corr}, []byte("stale"))
	require.Equal(c.t, wire.Error, c.client.next().Type)
}

// answer has the module send a frame on r, which the client must get.
func (c *conversation) answer(r bound, ty wire.Type, flags wire.Flags, corr uint64, body string) {
	c.t.Helper()
	c.send(c.module, wire.Header{Type: ty, Flags: flags, Channel: r.module.Channel, Epoch: r.module.Epoch, Corr: corr}, []byte(body))
	require.Equal(c.t, ty, c.client.next().Type)
}

// moduleOps plays what a module may and may not ask of the router.
func (c *conversation) moduleOps() {
	for _, body := range []string{
		`{"op":"supervisor.live_roots"}`, `{"op":"catalog.update","provides":[],"capabilities":{"provides":["Bad Name"],"requires":[],"must_never_reach":[]}}`,
		`{"op":"server.describe"}`, `{"op":"route.open"}`, `{"op":"no.such.op"}`, `junk`, ``,
	} {
		c.corr++
		c.send(c.module, wire.Header{Corr: c.corr}, []byte(body))
		c.hear()
	}
}

// reregister ends the registration with one live route and says Hello under
// another id on the same connection.
func (c *conversation) reregister() {
	c.send(c.module, wire.Header{Type: wire.Goodbye}, nil)
	for c.client.next().Type != wire.Goodbye {
	}
	c.register("tool-2")
	require.Equal(c.t, wire.Error, c.ask(wire.Request, c.opening("tool", "")).Type)
}

// clientLeaves ends the client's routes and opens again on the same connection.
func (c *conversation) clientLeaves() {
	c.send(c.client, wire.Header{Type: wire.Goodbye}, nil)
	c.hearGoodbye(c.last)
	r := c.mustOpen("tool-2")
	c.call(r, 0, []byte("again"))
	c.send(c.client, wire.Header{Type: wire.Goodbye, Channel: r.client.Channel, Epoch: r.client.Epoch}, nil)
	c.hearGoodbye(r)
}

// fatal plays the frames for which a connection is closed without a word.
func (c *conversation) fatal() {
	body := []byte("{}")
	frame := func(h wire.Header) []byte { return wire.AppendFrame(nil, h, body) }
	version := frame(wire.Header{})
	version[4] = 1
	for name, raw := range map[string][]byte{
		"an unknown type":          frame(wire.Header{Type: 12}),
		"priority 3":               frame(wire.Header{Flags: 3 << 1}),
		"class 3":                  frame(wire.Header{Flags: 3 << 4}),
		"an epoch on channel 0":    frame(wire.Header{Epoch: 1}),
		"another version":          version,
		"a Ping with a body":       frame(wire.Header{Type: wire.Ping}),
		"a body over the limit":    wire.Header{Len: wire.MaxBody + 1}.Append(nil),
		"an older, shorter header": {1, 0, 0, 0, 1},
	} {
		l := newLink(c.t, c.file, nil)
		l.conn.Write(raw)
		c.sent++
		<-l.ended
		require.Zero(c.t, l.record.Len(), name)
	}
}
