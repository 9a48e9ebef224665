package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// EventLagged is the name of the event that ends a stream whose reader fell
// behind.
const EventLagged = "lagged"

// maxLine bounds one line of the stream in bytes.
const maxLine = 1 << 20

// Stream is an event stream under way.
type Stream struct {
	body  io.Closer
	lines *bufio.Scanner
}

// Events follows the decisions of kinds, of all kinds when there are none, until
// ctx ends. The caller closes the stream.
func (c *Client) Events(ctx context.Context, kinds ...string) (*Stream, error) {
	q := url.Values{}
	if len(kinds) > 0 {
		q.Set("kind", strings.Join(kinds, ","))
	}
	res, err := c.do(ctx, http.MethodGet, PathEvents, q, nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, failure(res)
	}
	s := &Stream{body: res.Body, lines: bufio.NewScanner(res.Body)}
	s.lines.Buffer(nil, maxLine)
	return s, nil
}

// Next waits for the next event. It returns [ErrLagged] when the sidecar has cut
// the stream, io.EOF when it ended, and ctx's error when that did.
func (s *Stream) Next() (Event, error) {
	var e Event
	name := ""
	for s.lines.Scan() {
		field, value, _ := bytes.Cut(s.lines.Bytes(), []byte(": "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if name == EventLagged {
				return e, ErrLagged
			}
			if err := json.Unmarshal(value, &e); err != nil {
				return e, fmt.Errorf("an event can't be read: %w", err)
			}
			return e, nil
		}
	}
	if err := s.lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return e, err
	}
	return e, io.EOF
}

// Close ends the stream.
func (s *Stream) Close() error { return s.body.Close() }
