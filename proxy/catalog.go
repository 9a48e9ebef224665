package proxy

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/proxy/wire"
)

// withoutHelpers takes our own helpers out of a catalog. A catalog that
// shows none passes byte for byte.
func withoutHelpers(f held) []byte {
	if f.Type != wire.Response || !bytes.Contains(f.body(), []byte(wire.HelperPrefix)) {
		return f.frame
	}
	o, err := wire.ParseObject(f.body())
	if err != nil {
		return f.frame
	}
	raw, _ := o.Get("modules")
	var modules []jsontext.Value
	if json.Unmarshal(raw, &modules) != nil {
		return f.frame
	}
	kept := slices.DeleteFunc(modules, isHelper)
	o.Set("modules", slices.Concat([]byte{'['}, bytes.Join(asBytes(kept), []byte{','}), []byte{']'}))
	return o.AppendFrame(nil, f.Header)
}

func isHelper(module jsontext.Value) bool {
	o, err := wire.ParseObject(module)
	if err != nil {
		return false
	}
	raw, _ := o.Get("module_id")
	id, _ := wire.Text(raw)
	return strings.HasPrefix(id, wire.HelperPrefix)
}

func asBytes(values []jsontext.Value) [][]byte {
	b := make([][]byte, len(values))
	for i, v := range values {
		b[i] = v
	}
	return b
}
