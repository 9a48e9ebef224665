package table

import (
	"errors"
	"fmt"
)

// errSyntax says that a text is not JSON. It is told without its place, which
// would need the text to be understood.
var errSyntax = errors.New("not valid JSON")

// FieldError says that a body is malformed, and where. Its text is fit for a
// peer: it names members and never holds a value.
type FieldError struct {
	Field string // path of the member, as in scopes[3].kind; "" for the body itself
	What  string // what is wrong with it
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.What
	}
	return fmt.Sprintf("%s %s", e.Field, e.What)
}

func missing(name string) error { return &FieldError{Field: name, What: "is required"} }

func unknownMember(name string) error {
	return &FieldError{Field: QuoteName(name), What: "is not a member known here"}
}

// within puts name in front of an error's path.
func within(name string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := err.(*FieldError)
	if !ok {
		return &FieldError{What: "is not valid JSON"}
	}
	switch {
	case f.Field == "":
		return &FieldError{Field: name, What: f.What}
	case f.Field[0] == '[':
		return &FieldError{Field: name + f.Field, What: f.What}
	}
	return &FieldError{Field: name + "." + f.Field, What: f.What}
}
