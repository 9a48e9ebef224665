package table

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FieldError says that a body is malformed, and where. Its text is fit for a
// peer: it names members and never holds a value.
type FieldError struct {
	Field string
	What  string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.What
	}
	return fmt.Sprintf("%q %s", e.Field, e.What)
}

func missing(name string) error       { return &FieldError{Field: name, What: "is required"} }
func unknownMember(name string) error { return &FieldError{Field: name, What: "is unknown"} }

// optional is a member that may be absent.
type optional[T any] struct {
	set   bool
	value T
}

func (o *optional[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	o.set = true
	return json.UnmarshalDecode(dec, &o.value)
}

func readObject(dec *jsontext.Decoder, member func(name string) (any, bool)) error {
	if dec.PeekKind() != '{' {
		return &FieldError{What: "is not an object"}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		into, known := member(name)
		if !known {
			return unknownMember(name)
		}
		if err := json.UnmarshalDecode(dec, into); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// objectWriter writes one JSON object and keeps the first error.
type objectWriter struct {
	enc *jsontext.Encoder
	err error
}

func (w *objectWriter) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.enc.WriteToken(t)
	}
}
func (w *objectWriter) begin() { w.token(jsontext.BeginObject) }
func (w *objectWriter) end()   { w.token(jsontext.EndObject) }
func (w *objectWriter) str(name, value string) {
	w.token(jsontext.String(name))
	w.token(jsontext.String(value))
}
