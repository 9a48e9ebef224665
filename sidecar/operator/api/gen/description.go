package main

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// description is what of an OpenAPI document the types are made from.
type description struct {
	Components struct {
		Schemas ordered[schema] `json:"schemas"`
	} `json:"components"`
}

// schema is one schema: an object with properties, or the type of a property.
type schema struct {
	Ref         string          `json:"$ref"`
	Type        string          `json:"type"`
	Format      string          `json:"format"`
	Minimum     int             `json:"minimum"` // over 0, an absent integer is 0 in Go
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	Items       *schema         `json:"items"`
	Required    []string        `json:"required"`
	Properties  ordered[schema] `json:"properties"`
}

// ordered is a JSON object whose members keep their order.
type ordered[T any] []member[T]

type member[T any] struct {
	name  string
	value T
}

func (o *ordered[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	in := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	for in.PeekKind() != '}' {
		var m member[T]
		if err := json.UnmarshalDecode(in, &m.name); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(in, &m.value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}
