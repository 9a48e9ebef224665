package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
)

// A flooder is this test binary as a hostile peer: it repeats one thing as fast
// as it can until its standard input ends.

// envFlood names the flood, envFloodFile the connection file of its victim.
const (
	envFlood     = "SCOPEWARD_E2E_FLOOD"
	envFloodFile = "SCOPEWARD_E2E_FLOOD_FILE"
)

// floods are what a hostile peer does with its connection. Each returns only with
// an error.
var floods = map[string]func(c *flooder) error{
	"opens":                  func(c *flooder) error { return c.open(1) },
	"refused opens":          func(c *flooder) error { return c.open(9) },
	"opens of nothing":       func(c *flooder) error { return c.open(0) },
	"goodbyes":               (*flooder).goodbyes,
	"syncs":                  (*flooder).syncs,
	"never reads":            (*flooder).deaf,
	"one byte at a time":     (*flooder).bytewise,
	"bodies of 64 MiB":       (*flooder).large,
	"bodies cut short":       (*flooder).cut,
	"stuck handshakes":       (*flooder).stuck,
	"two thousand that idle": (*flooder).idle,
	"a busy loop":            (*flooder).spin,
}

// flooder is a hostile peer and its first connection.
type flooder struct {
	net.Conn
	file string
}

// flood is a flooder's whole life.
func flood(name string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	file := os.Getenv(envFloodFile)
	c, err := dialFile(file)
	if err == nil {
		err = floods[name](&flooder{c, file})
	}
	os.Stderr.WriteString("the flood ended: " + err.Error() + "\n")
	os.Exit(1)
}

// again repeats b, and reads what is answered.
func (c *flooder) again(b []byte) error {
	go io.Copy(io.Discard, c)
	for {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
}

// opening is an open by a direct client: under an epoch, or without a scope.
func opening(epoch uint64, project string) []byte {
	o := object{
		"op": wire.OpRouteOpen, "target": object{"kind": "tool_provider", "module_id": idEcho},
		"identity": object{"project_root": project, "harness": "e2e", "session": "s1"},
	}
	if epoch > 0 {
		o["scope"] = selector("s", epoch)
	}
	return wire.MustMarshal(o)
}

// open keeps eight opens under way, as many as the router takes, and leaves each
// route that it is given.
func (c *flooder) open(epoch uint64) error {
	body := opening(epoch, os.TempDir())
	for corr := range uint64(8) {
		if _, err := c.Write(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: corr + 1}, body)); err != nil {
			return err
		}
	}
	for {
		f, err := wire.ReadFrame(c)
		if err != nil {
			return err
		}
		if f.Channel != 0 || f.Type != wire.Response && f.Type != wire.Error {
			continue
		}
		var b []byte
		var r route
		if f.Type == wire.Response && json.Unmarshal(f.Body, &r) == nil {
			b = wire.AppendGoodbye(b, r.Channel, r.Epoch)
		}
		if _, err := c.Write(wire.AppendFrame(b, wire.Header{Type: wire.Request, Corr: f.Corr}, body)); err != nil {
			return err
		}
	}
}

// goodbyes are for routes that there are not.
func (c *flooder) goodbyes() error {
	var b []byte
	for i := range uint16(1000) {
		b = wire.AppendGoodbye(b, i+1, 7)
	}
	return c.again(b)
}

// syncs are of ten thousand records, by a module that nobody launched: each is
// decoded and then refused.
func (c *flooder) syncs() error {
	b := wire.AppendFrame(nil, wire.Header{Type: wire.Hello, Corr: 1}, helloBody("flood"))
	if _, err := c.Write(b); err != nil {
		return err
	}
	records := make([]object, 10_000)
	for i := range records {
		records[i] = record(strconv.Itoa(i), 1)
	}
	body := wire.MustMarshal(object{"op": wire.OpScopeSync, "generation": 1, "scopes": records})
	return c.again(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 2}, body))
}

// deaf asks and never reads.
func (c *flooder) deaf() error {
	b := bytes.Repeat(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 1}, []byte(`{"op":"scope.sync"}`)), 1000)
	for {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
}

// bytewise sends pings, one byte at a time.
func (c *flooder) bytewise() error {
	go io.Copy(io.Discard, c)
	b := wire.AppendFrame(nil, wire.Header{Type: wire.Ping, Corr: 1}, nil)
	for i := 0; ; i = (i + 1) % len(b) {
		if _, err := c.Write(b[i : i+1]); err != nil {
			return err
		}
	}
}

// large sends requests of 64 MiB, which are refused.
func (c *flooder) large() error {
	body := append(bytes.Repeat([]byte(" "), wire.MaxBody-2), "{}"...)
	return c.again(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 1}, body))
}

// cut connects, stops inside a body and closes.
func (c *flooder) cut() error {
	body := wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 1}, opening(1, os.TempDir()))
	for i := 0; ; i = (i + 1) % len(body) {
		one, err := dialFile(c.file)
		if err != nil {
			continue
		}
		_, _ = one.Write(body[:i])
		_ = one.Close()
	}
}

// stuck fills every place for a handshake, and again when they are cut.
func (c *flooder) stuck() error {
	file, err := connfile.Read(c.file)
	if err != nil {
		return err
	}
	for {
		var all []net.Conn
		for range handshake.MaxUnauthenticated {
			one, err := net.Dial("tcp", file.Endpoints[0].Address())
			if err != nil {
				continue
			}
			_, _ = one.Write([]byte{9, 0, 0})
			all = append(all, one)
		}
		for _, one := range all {
			_ = one.SetReadDeadline(time.Now().Add(2 * handshake.Timeout))
			_, _ = io.Copy(io.Discard, one)
			_ = one.Close()
		}
	}
}

// spin is no hostile peer: what a process at nice 19 costs everybody.
func (c *flooder) spin() error {
	for n := uint64(0); ; n++ {
		if n == 1<<63 {
			return io.EOF
		}
	}
}

// idle makes connections and leaves them alone.
func (c *flooder) idle() error {
	var all []net.Conn
	for len(all) < 2000 {
		if one, err := dialFile(c.file); err == nil {
			all = append(all, one)
		}
	}
	_, err := io.Copy(io.Discard, all[0])
	return errors.Join(err, io.EOF)
}
