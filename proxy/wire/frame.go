package wire

import "io"

// Frame is one whole frame. Body is nil for a pure header.
type Frame struct {
	Header
	Body []byte
}

// AppendFrame appends a whole frame to b. The header's Len is taken from body.
func AppendFrame(b []byte, h Header, body []byte) []byte {
	h.Len = uint32(len(body))
	return append(h.Append(b), body...)
}

// AppendGoodbye appends the Goodbye that closes (channel, epoch).
func AppendGoodbye(b []byte, channel uint16, epoch uint32) []byte {
	return Header{Type: Goodbye, Channel: channel, Epoch: epoch}.Append(b)
}

// ReadFrame reads one whole frame from r. The first five bytes are read and
// judged before the rest, so that a peer of another version is an error and not
// a wait. A body is allocated as it arrives, never on the header's word alone:
// at most twice what r delivered.
//
// It returns io.EOF at a frame boundary, io.ErrUnexpectedEOF inside a frame.
func ReadFrame(r io.Reader) (Frame, error) {
	var x [HeaderLen]byte
	if _, err := io.ReadFull(r, x[:PreludeLen]); err != nil {
		return Frame{}, err
	}
	if x[offVersion] != Version {
		return Frame{}, &VersionError{Got: x[offVersion]}
	}
	if _, err := io.ReadFull(r, x[PreludeLen:]); err != nil {
		return Frame{}, unexpected(err)
	}
	h, err := ParseHeader(x[:])
	if err != nil {
		return Frame{}, err
	}
	if h.Len == 0 {
		return Frame{Header: h}, nil
	}
	body, err := readBody(r, int(h.Len))
	return Frame{Header: h, Body: body}, err
}

// firstAlloc is how much of a body is allocated before any of it has arrived.
const firstAlloc = 64 << 10

func readBody(r io.Reader, n int) ([]byte, error) {
	body := make([]byte, 0, min(n, firstAlloc))
	for len(body) < n {
		if len(body) == cap(body) {
			grown := make([]byte, len(body), min(n, 2*cap(body)))
			copy(grown, body)
			body = grown
		}
		m, err := io.ReadFull(r, body[len(body):cap(body)])
		body = body[:len(body)+m]
		if err != nil {
			return nil, unexpected(err)
		}
	}
	return body, nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
