package proxy

import (
	"bytes"
	stdjson "encoding/json" // another reader on purpose: what it sees, the router may see
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// reading is what some reader may take from a control body: every value that
// stands at the top under a name, or at a place of an array that the router
// takes for an object.
type reading struct {
	ops    []string
	scoped bool
	marked bool
	array  bool // the body, or a structure in it, is an array
}

// readAll reads a body as liberally as can be. ok is false for what no reader
// takes for JSON.
func readAll(b []byte) (r reading, ok bool) {
	if !stdjson.Valid(b) {
		return r, false
	}
	dec := stdjson.NewDecoder(bytes.NewReader(b))
	tok, err := dec.Token()
	if err != nil {
		return r, false
	}
	switch tok {
	case stdjson.Delim('['):
		r.array = true
		for dec.More() {
			var raw stdjson.RawMessage
			if dec.Decode(&raw) != nil {
				return r, false
			}
			var s string
			if stdjson.Unmarshal(raw, &s) == nil {
				r.ops = append(r.ops, s)
			}
		}
	case stdjson.Delim('{'):
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return r, false
			}
			var raw stdjson.RawMessage
			if dec.Decode(&raw) != nil {
				return r, false
			}
			var s string
			switch name {
			case "op":
				if stdjson.Unmarshal(raw, &s) == nil {
					r.ops = append(r.ops, s)
				}
			case "scope":
				r.scoped = r.scoped || string(raw) != "null"
			case "target", "identity", "consumer_identity":
				r.array = r.array || raw[0] == '['
			case "consumer_capabilities":
				var list []string
				_ = stdjson.Unmarshal(raw, &list)
				for _, c := range list {
					r.marked = r.marked || strings.HasPrefix(c, wire.MarkPrefix)
				}
			}
		}
	}
	return r, true
}

func (r reading) opens() bool {
	for _, op := range r.ops {
		if op == wire.OpRouteOpen {
			return true
		}
	}
	return false
}

// differentialCorpus is what two readers have been known to disagree about.
func differentialCorpus() []string {
	open := func(more string) string {
		return `{"op":"route.open","target":{"kind":"tool_provider","module_id":"tool"},"identity":{"project_root":"/p","harness":"h","session":"s"}` + more + `}`
	}
	sel := `{"owner":{"kind":"reserved","module_id":"owner"},"ref":"s","scope_epoch":1}`
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	return []string{
		open(``), open(`,"scope":null`), open(`,"scope":` + sel),
		open(`,"scope":` + sel + `,"scope":null`), open(`,"scope":null,"scope":` + sel),
		open(`,"sc\u006fpe":` + sel), open(`,"\u0073cope":` + sel + `,"scope":null`),
		open(`,"Scope":` + sel), open(`,"SCOPE":` + sel), open(`,"scope ":` + sel),
		"\ufeff" + open(`,"scope":`+sel), open(`,"scope":`+sel) + "x", open(`,"scope":`+sel) + "{}",
		open(`,"scope":` + sel + `,"z":` + deep), open(`,"z":` + deep + `,"scope":` + sel),
		open(`,"scope":` + sel + `,"n":1e99999`), open(`,"scope":` + sel + `,"n":` + strings.Repeat("9", 5000)),
		open(`,"scope":` + sel + `,"u":"\ud800"`), open(`,"\udc00":1,"scope":` + sel), open(`,"scope":"\ud800"`),
		open(`,"scope":[` + sel + `]`), open(`,"scope":[["owner"],"s",1]`), open(`,"scope":"s"`), open(`,"scope":0`), open(`,"scope":false`),
		`{"op":"server.describe","op":"route.open","scope":` + sel + `,"target":{},"identity":{}}`,
		`{"scope":` + sel + `,"op":"route.open","target":{"kind":"tool_provider","module_id":"tool"},"identity":{"project_root":"/p","harness":"h","session":"s"}}`,
		`{"\u006fp":"route.open","scope":` + sel + `,"target":{"kind":"tool_provider","module_id":"tool"},"identity":{"project_root":"/p","harness":"h","session":"s"}}`,
		`{"op":"route\u002eopen","scope":` + sel + `,"target":{"kind":"tool_provider","module_id":"tool"},"identity":{"project_root":"/p","harness":"h","session":"s"}}`,
		`["route.open",{"kind":"tool_provider","module_id":"tool"},["/p","h","s"],null,null,` + sel + `]`,
		" \t\r\n" + open(`,"scope":`+sel) + " \n", open("\x00,\"scope\":" + sel), `{"op":"route.open","scope"` + "\v" + `:` + sel + `}`,
		open(`,"scope":` + sel + `,"consumer_capabilities":["` + wire.MarkPrefix + `00"]`),
		open(`,"consumer_capabilities":["scopeward\u002eopen\/00"]`), open(`,"consumer_capabilities":{"0":"x"},"scope":` + sel),
		"", "null", "5", `"route.open"`, "{", "[", `{"op":`, `{"op":"route.open",}`, `{"op":"route.open" "scope":1}`,
	}
}

// checkOpen holds one body against the law: what names a scope to any reader is
// never forwarded as an open without one, and nothing is forwarded in a shape
// that the router reads and we do not.
func checkOpen(t *testing.T, b []byte) {
	r := newRig(t)
	c := r.connect()
	c.fromPeer(wire.AppendFrame(nil, wire.Header{Type: wire.Request, Corr: 7}, b))
	sent, _ := readAll(b)
	for _, f := range c.toRouter() {
		got, ok := readAll(f.Body)
		if !ok || !got.opens() {
			continue // the router refuses it, or opens nothing for it
		}
		require.False(t, got.array, "an array was forwarded: %.200s", f.Body)
		require.False(t, got.scoped, "a scope was forwarded: %.200s", f.Body)
		require.Equal(t, sent.scoped, got.marked, "%.200s", b)
	}
}

func TestNoReaderSeesAScopeThatWeDoNot(t *testing.T) {
	for _, b := range differentialCorpus() {
		checkOpen(t, []byte(b))
	}
}

func FuzzOpenNeverUnscoped(f *testing.F) {
	for _, b := range differentialCorpus() {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkOpen(t, b) })
}
