package handshake

import (
	"encoding/binary"
	"io"
	"strconv"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxMessage is the largest message in bytes, its length prefix not counted.
const MaxMessage = 4096

const prefixLen = 4

// The members of the three messages.
const (
	fieldClientNonce = "client_nonce"
	fieldRole        = "role"
	fieldDaemonID    = "daemon_id"
	fieldServerNonce = "server_nonce"
	fieldDaemonVer   = "daemon_ver"
	fieldServerProof = "server_proof"
	fieldClientAuth  = "client_auth"
)

// writer renders one message behind room for its length.
type writer struct{ b []byte }

func newWriter() writer { return writer{b: make([]byte, prefixLen, 640)} }

func (w *writer) name(name string) {
	sep := byte(',')
	if len(w.b) == prefixLen {
		sep = '{'
	}
	w.b = append(w.b, sep, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) bytes(name string, v []byte) {
	w.name(name)
	w.b = append(w.b, '[')
	for i, c := range v {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = strconv.AppendUint(w.b, uint64(c), 10)
	}
	w.b = append(w.b, ']')
}

func (w *writer) text(name, v string) error {
	w.name(name)
	b, err := jsontext.AppendQuote(w.b, v)
	if err != nil {
		return &MessageError{name, "is not valid UTF-8"}
	}
	w.b = b
	return nil
}

// finish is the message behind its length.
func (w *writer) finish() ([]byte, error) {
	w.b = append(w.b, '}')
	n := len(w.b) - prefixLen
	if n > MaxMessage {
		return nil, ErrSize
	}
	binary.LittleEndian.PutUint32(w.b, uint32(n))
	return w.b, nil
}

// send writes length and message at once: one packet on a socket.
func (w *writer) send(to io.Writer) error {
	b, err := w.finish()
	if err != nil {
		return err
	}
	_, err = to.Write(b)
	return err
}

// message is one message as it came.
type message struct{ o wire.Object }

// receive reads one message and not a byte more.
func receive(from io.Reader) (message, error) {
	var prefix [prefixLen]byte
	if _, err := io.ReadFull(from, prefix[:]); err != nil {
		return message{}, err
	}
	n := binary.LittleEndian.Uint32(prefix[:])
	if n > MaxMessage {
		return message{}, ErrSize
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(from, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return message{}, err
	}
	return parse(body)
}

func parse(body []byte) (message, error) {
	o, err := wire.ParseObject(body)
	if err != nil {
		return message{}, &MessageError{"", "is not a JSON object"}
	}
	return message{o}, nil
}

// value returns the one member called name. Members that are not ours are
// ignored, as the router ignores them; a repeated one of ours is refused, as it
// refuses it.
func (m *message) value(name string) (jsontext.Value, error) {
	switch m.o.Count(name) {
	case 0:
		return nil, &MessageError{name, "is missing"}
	case 1:
		v, _ := m.o.Get(name)
		return v, nil
	}
	return nil, &MessageError{name, "is repeated"}
}

// bytes fills dst from the array of numbers called name, which must have
// exactly as many.
func (m *message) bytes(name string, dst []byte) error {
	v, err := m.value(name)
	if err != nil {
		return err
	}
	if !parseBytes(v, dst) {
		return &MessageError{name, "is not an array of " + strconv.Itoa(len(dst)) + " bytes"}
	}
	return nil
}

func (m *message) text(name string) (string, error) {
	v, err := m.value(name)
	if err != nil {
		return "", err
	}
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return "", &MessageError{name, "is not a string"}
	}
	return s, nil
}

// parseBytes reads a JSON array of exactly len(dst) numbers from 0 to 255. v is
// one value: nothing stands behind its bracket.
func parseBytes(v []byte, dst []byte) bool {
	c := cursor(v)
	if !c.take('[') {
		return false
	}
	for i := range dst {
		if i > 0 && !c.take(',') {
			return false
		}
		n, ok := c.number()
		if !ok {
			return false
		}
		dst[i] = n
	}
	return c.take(']')
}

// cursor is what is left of an array.
type cursor []byte

func (c *cursor) space() {
	for len(*c) > 0 {
		switch (*c)[0] {
		case ' ', '\t', '\n', '\r':
			*c = (*c)[1:]
		default:
			return
		}
	}
}

func (c *cursor) take(want byte) bool {
	c.space()
	if len(*c) == 0 || (*c)[0] != want {
		return false
	}
	*c = (*c)[1:]
	return true
}

// number reads one number from 0 to 255, without sign, fraction or leading
// zero.
func (c *cursor) number() (byte, bool) {
	c.space()
	n, i := 0, 0
	for i < len(*c) && (*c)[i] >= '0' && (*c)[i] <= '9' {
		n = n*10 + int((*c)[i]-'0')
		i++
		if n > 255 {
			return 0, false
		}
	}
	if i == 0 || i > 1 && (*c)[0] == '0' {
		return 0, false
	}
	*c = (*c)[i:]
	return byte(n), true
}
