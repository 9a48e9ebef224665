package table

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"
)

// Ops that this package decodes and answers.
const (
	opSync     = "scope.sync"
	opApply    = "scope.apply"
	opDescribe = "scope.describe"
)

// DecodeSync decodes the body of a scope.sync. It needs no lock. Wrong types,
// unknown members of a record, repeated members and a malformed hash are refused
// invalid_control_body, before any other check of the call but not_registered.
// Members of the body itself that are unknown are passed over.
func DecodeSync(body []byte) (*SyncCall, *Refusal) {
	c := &SyncCall{call{op: opSync, full: true}}
	if err := c.decode(body, syncMembers); err != nil {
		return nil, malformed(err)
	}
	return c, nil
}

// DecodeApply decodes the body of a scope.apply, as [DecodeSync] does.
func DecodeApply(body []byte) (*ApplyCall, *Refusal) {
	c := &ApplyCall{call{op: opApply}}
	if err := c.decode(body, applyMembers); err != nil {
		return nil, malformed(err)
	}
	return c, nil
}

var (
	syncMembers  = members{"op", "generation", "scopes"}
	applyMembers = members{"op", "generation", "upsert", "end"}
	endMembers   = members{"ref", "scope_epoch"}
)

func (c *call) decode(body []byte, m members) error {
	r := newReader(body)
	read := r.entry
	if c.recall != nil {
		known, within := c.recall.known(), &reader{dec: new(jsontext.Decoder), names: r.names}
		c.met = make(map[[sha256.Size]byte]decoded, len(known))
		read = func() (entry, error) { return c.entryOnce(r, within, known) }
	}
	s, err := r.object(m, true, func(i int) (err error) {
		switch i {
		case 0:
			_, err = r.string()
		case 1:
			c.generation, err = r.uint()
		case 2:
			err = r.array(func() error {
				e, err := read()
				c.entries = append(c.entries, e)
				return err
			})
		case 3:
			err = r.array(func() error {
				e, err := r.exactEnd()
				c.ends = append(c.ends, e)
				return err
			})
		}
		return err
	})
	if err == nil {
		err = m.require(s, 1, 2)
	}
	if err == nil && !c.full {
		err = m.require(s, 3)
	}
	if err == nil {
		err = r.finish()
	}
	if err == nil {
		c.seal()
	}
	return err
}

func (r *reader) exactEnd() (e end, err error) {
	s, err := r.object(endMembers, false, func(i int) (err error) {
		if i == 0 {
			e.ref, err = r.string()
		} else {
			e.epoch, err = r.uint()
		}
		return err
	})
	if err != nil {
		return end{}, err
	}
	return e, endMembers.require(s, 0, 1)
}

func malformed(err error) *Refusal {
	f, ok := err.(*FieldError)
	if !ok {
		f = &FieldError{What: "is not valid JSON"}
	}
	if f.Field == "" {
		f = &FieldError{Field: "the body", What: f.What}
	}
	return &Refusal{Code: CodeInvalidControlBody, Message: f.Error()}
}
