package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// document is the file as it was parsed, with the place of everything in it.
type document struct {
	file string
	data []byte
	root hujson.Value
}

// decode reads data strictly into c and returns the document for later
// complaints.
func decode(file string, data []byte, c *Config) (*document, error) {
	d := &document{file: file, data: data}
	root, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		return nil, d.syntax(err)
	}
	root.UpdateOffsets()
	d.root = root
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, d.at(0, "is not an object: begin with {")
	}
	standard, err := hujson.Standardize(bytes.Clone(data))
	if err != nil {
		return nil, d.syntax(err)
	}
	if err := json.Unmarshal(standard, c, json.RejectUnknownMembers(true)); err != nil {
		return nil, d.refuse(err)
	}
	return d, d.nulls(&root, "")
}

// syntax turns hujson's complaint, which has a place in its text, into ours.
func (d *document) syntax(err error) error {
	var line, column int
	text := err.Error()
	if n, _ := fmt.Sscanf(text, "hujson: line %d, column %d:", &line, &column); n == 2 {
		_, what, _ := strings.Cut(text, fmt.Sprintf("column %d: ", column))
		return &Error{File: d.file, Line: line, Column: column, What: "is not JSON (" + what + "): correct it there"}
	}
	return &Error{File: d.file, What: "is not JSON: correct it"}
}

// refuse turns the decoder's complaint into ours: an unknown name, a repeated
// one, or a value of another type.
func (d *document) refuse(err error) error {
	var s *json.SemanticError
	if errors.As(err, &s) {
		key := dotted(s.JSONPointer)
		if errors.Is(err, json.ErrUnknownName) {
			return d.at(d.nameOffset(s.JSONPointer), fmt.Sprintf("unknown key %q: did you mean %q?", key, nearest(key)))
		}
		return d.at(d.valueOffset(s.JSONPointer), fmt.Sprintf("%q must be %s", key, phrase(s.JSONPointer)))
	}
	var t *jsontext.SyntacticError
	if errors.As(err, &t) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return d.at(int(t.ByteOffset), fmt.Sprintf("%q is given twice: remove one", dotted(t.JSONPointer)))
		}
		return d.at(int(t.ByteOffset), "is not JSON: correct it there")
	}
	return &Error{File: d.file, What: "can't be decoded: compare it with the sample configuration"}
}

// nulls refuses null: it would silently mean a zero and not the default.
func (d *document) nulls(v *hujson.Value, ptr string) error {
	switch x := v.Value.(type) {
	case hujson.Literal:
		if string(x) == "null" {
			return d.at(v.StartOffset, fmt.Sprintf("%q is null: remove it for the default, or give it a value", dotted(jsontext.Pointer(ptr))))
		}
	case *hujson.Object:
		for i := range x.Members {
			m := &x.Members[i]
			if err := d.nulls(&m.Value, ptr+"/"+literal(m.Name)); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range x.Elements {
			if err := d.nulls(&x.Elements[i], fmt.Sprintf("%s/%d", ptr, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// complain gives a problem its place, when its key is in the file.
func (d *document) complain(p *Problem) error {
	ptr := jsontext.Pointer("/" + strings.ReplaceAll(p.Key, ".", "/"))
	what := fmt.Sprintf("%q %s", p.Key, p.What)
	if d.root.Find(string(ptr)) == nil {
		return &Error{File: d.file, What: what}
	}
	return d.at(d.valueOffset(ptr), what)
}

func (d *document) at(offset int, what string) error {
	offset = min(max(offset, 0), len(d.data))
	before := d.data[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + offset - (bytes.LastIndexByte(before, '\n') + 1)
	return &Error{File: d.file, Line: line, Column: column, What: what}
}

func (d *document) valueOffset(ptr jsontext.Pointer) int {
	if v := d.root.Find(string(ptr)); v != nil {
		return v.StartOffset
	}
	return 0
}

// nameOffset finds the name of the member that ptr points at.
func (d *document) nameOffset(ptr jsontext.Pointer) int {
	parent := d.root.Find(string(ptr.Parent()))
	if parent == nil {
		return 0
	}
	if o, ok := parent.Value.(*hujson.Object); ok {
		for i := range o.Members {
			if literal(o.Members[i].Name) == ptr.LastToken() {
				return o.Members[i].Name.StartOffset
			}
		}
	}
	return parent.StartOffset
}

func literal(v hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return l.String()
}

// dotted writes a pointer as keys are written in text: log.level.
func dotted(ptr jsontext.Pointer) string {
	var parts []string
	for t := range ptr.Tokens() {
		parts = append(parts, t)
	}
	return strings.Join(parts, ".")
}

// phrase says what the value at ptr must be.
func phrase(ptr jsontext.Pointer) string {
	t := reflect.TypeFor[Config]()
	for token := range ptr.Tokens() {
		switch t.Kind() {
		case reflect.Struct:
			f, ok := field(t, token)
			if !ok {
				return "something else"
			}
			t = f.Type
		case reflect.Slice:
			t = t.Elem()
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list of strings"
	default:
		return "an object"
	}
}

func field(t reflect.Type, name string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if f.Tag.Get("json") == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}
