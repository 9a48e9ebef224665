package routertest

import (
	"fmt"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Reply is a frame that answers a request, or a push.
type Reply struct {
	p     *Peer
	Frame wire.Frame
}

// Code is the code of an Error, and "" of everything else.
func (r Reply) Code() string {
	if r.Frame.Type != wire.Error {
		return ""
	}
	return r.Text("code")
}

// Member is the raw value of a member of the body, nil when there is none.
func (r Reply) Member(name string) jsontext.Value {
	o, err := wire.ParseObject(r.Frame.Body)
	if err != nil {
		return nil
	}
	v, _ := o.Get(name)
	return v
}

// Text is a member that is a string, and "" otherwise.
func (r Reply) Text(name string) string {
	var s string
	if v := r.Member(name); v == nil || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// Into decodes the body and fails the test when it can't.
func (r Reply) Into(v any) {
	r.p.tb.Helper()
	if err := json.Unmarshal(r.Frame.Body, v); err != nil {
		r.p.tb.Fatalf("%s: %s: %v", r.p.name, describe(r.Frame), err)
	}
}

// OK fails the test when the reply is an Error.
func (r Reply) OK() Reply {
	r.p.tb.Helper()
	if r.Frame.Type == wire.Error {
		r.p.tb.Fatalf("%s: refused: %s", r.p.name, describe(r.Frame))
	}
	return r
}

// Refused fails the test when the reply is no Error with that code.
func (r Reply) Refused(code string) Reply {
	r.p.tb.Helper()
	if r.Code() != code {
		r.p.tb.Fatalf("%s: wanted the refusal %s, got %s", r.p.name, code, describe(r.Frame))
	}
	return r
}

// describe is a frame for a failure's text.
func describe(f wire.Frame) string {
	s := fmt.Sprintf("%s (%d, %d) corr %d", f.Type, f.Channel, f.Epoch, f.Corr)
	if len(f.Body) > 0 {
		s += " " + clip(f.Body)
	}
	return s
}

func clip(b []byte) string {
	const most = 300
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%q", b)
}
