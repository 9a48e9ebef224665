package connfile

import (
	"bytes"
	"fmt"
	"strconv"

	"scopeward/proxy/handshake"
	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Schema is the only connection file schema that is read and written.
const Schema = 1

// Endpoint is one address a router listens on.
type Endpoint struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

// File is a connection file. Members that are not listed here, such as newer
// routers' local_endpoint, are neither read nor written.
type File struct {
	Endpoints []Endpoint // in order of preference, at least one
	Key       Secret     // at least 32 bytes
	DaemonID  []byte     // 16 bytes, new at every start of a daemon
	PID       uint32     // the daemon's process
	DaemonVer string
}

// SameDaemon reports whether f and g were published by one and the same start
// of a daemon.
func (f File) SameDaemon(g File) bool {
	return len(f.DaemonID) > 0 && bytes.Equal(f.DaemonID, g.DaemonID)
}

// content is the file's JSON. The key and the daemon_id are arrays of numbers.
type content struct {
	Schema      uint32     `json:"schema"`
	WireVersion *uint8     `json:"wire_version"`
	Endpoints   []Endpoint `json:"endpoints"`
	Key         []uint16   `json:"key"`
	DaemonID    []uint16   `json:"daemon_id"`
	PID         *uint32    `json:"pid"`
	DaemonVer   *string    `json:"daemon_ver"`
}

// Parse reads the content of a connection file. Unknown members are ignored,
// wire_version may be absent or null. Its errors wrap [ErrMalformed] or
// [ErrWireVersion], name a member and hold no value.
func Parse(data []byte) (File, error) {
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return File{}, fmt.Errorf("%w: %s", ErrMalformed, where(err))
	}
	switch {
	case c.Schema != Schema:
		return File{}, fmt.Errorf("%w: schema is not 1", ErrMalformed)
	case len(c.Endpoints) == 0:
		return File{}, fmt.Errorf("%w: endpoints is missing or empty", ErrMalformed)
	case len(c.Key) < handshake.MinKey:
		return File{}, fmt.Errorf("%w: key is shorter than %d bytes", ErrMalformed, handshake.MinKey)
	case len(c.DaemonID) != handshake.DaemonIDLen:
		return File{}, fmt.Errorf("%w: daemon_id is not %d bytes", ErrMalformed, handshake.DaemonIDLen)
	case c.PID == nil:
		return File{}, fmt.Errorf("%w: pid is missing", ErrMalformed)
	case c.DaemonVer == nil:
		return File{}, fmt.Errorf("%w: daemon_ver is missing", ErrMalformed)
	case c.WireVersion != nil && *c.WireVersion != wire.Version:
		return File{}, fmt.Errorf("%w: wire_version is not %d", ErrWireVersion, wire.Version)
	}
	for _, e := range c.Endpoints {
		if e.Host == "" || e.Port == 0 {
			return File{}, fmt.Errorf("%w: an endpoint lacks host or port", ErrMalformed)
		}
	}
	f := File{Endpoints: c.Endpoints, PID: *c.PID, DaemonVer: *c.DaemonVer}
	var ok bool
	if f.Key, ok = narrow(c.Key); !ok {
		return File{}, fmt.Errorf("%w: key holds a number over 255", ErrMalformed)
	}
	if f.DaemonID, ok = narrow(c.DaemonID); !ok {
		return File{}, fmt.Errorf("%w: daemon_id holds a number over 255", ErrMalformed)
	}
	return f, nil
}

func narrow(numbers []uint16) ([]byte, bool) {
	b := make([]byte, len(numbers))
	for i, n := range numbers {
		if n > 255 {
			return nil, false
		}
		b[i] = byte(n)
	}
	return b, true
}

// where says at which member decoding failed. The decoder's own text may quote
// the input, and the input holds the key.
func where(err error) string {
	if e, ok := err.(*json.SemanticError); ok && e.JSONPointer != "" {
		return string(e.JSONPointer) + " is not of its type"
	}
	return "its JSON does not parse"
}

// Append renders f as the sidecar publishes it: schema, wire_version,
// endpoints, key, daemon_id, pid, daemon_ver and nothing else.
func (f File) Append(b []byte) []byte {
	b = append(b, `{"schema":`...)
	b = strconv.AppendInt(b, Schema, 10)
	b = append(b, `,"wire_version":`...)
	b = strconv.AppendInt(b, wire.Version, 10)
	b = append(b, `,"endpoints":`...)
	b = append(b, wire.MustMarshal(f.Endpoints)...)
	b = append(b, `,"key":`...)
	b = appendNumbers(b, f.Key)
	b = append(b, `,"daemon_id":`...)
	b = appendNumbers(b, f.DaemonID)
	b = append(b, `,"pid":`...)
	b = strconv.AppendUint(b, uint64(f.PID), 10)
	b = append(b, `,"daemon_ver":`...)
	b, _ = jsontext.AppendQuote(b, f.DaemonVer)
	return append(b, '}', '\n')
}

func appendNumbers(b []byte, v []byte) []byte {
	b = append(b, '[')
	for i, c := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(c), 10)
	}
	return append(b, ']')
}
