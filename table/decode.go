package table

import "unsafe"

// Ops that this package decodes and answers.
const (
	opSync     = "scope.sync"
	opApply    = "scope.apply"
	opDescribe = "scope.describe"
)

// DecodeSync decodes the body of a scope.sync. It needs no lock, and keeps nothing
// of body. Wrong types, unknown members of a record, repeated members and a
// malformed hash are refused invalid_control_body, before any other check of the
// call but not_registered. Members of the body itself that are unknown are passed
// over.
func DecodeSync(body []byte) (*SyncCall, *Refusal) { return decodeSync(body, nil) }

// DecodeSync is the function of that name, for a body of owner's: records that
// stood in its last accepted full set byte for byte are not decoded again. It
// needs no lock of the table's.
func (t *Table) DecodeSync(owner string, body []byte) (*SyncCall, *Refusal) {
	if len(body) <= longBody {
		return DecodeSync(body)
	}
	r, _ := t.recalls.LoadOrStore(owner, &recall{})
	return decodeSync(body, r.(*recall))
}

func decodeSync(body []byte, r *recall) (*SyncCall, *Refusal) {
	c := &SyncCall{call{op: opSync, full: true, recall: r}}
	if err := c.decode(reading(body), syncMembers); err != nil {
		return nil, malformed(err)
	}
	return c, nil
}

// DecodeApply decodes the body of a scope.apply, as [DecodeSync] does.
func DecodeApply(body []byte) (*ApplyCall, *Refusal) {
	c := &ApplyCall{call{op: opApply}}
	if err := c.decode(reading(body), applyMembers); err != nil {
		return nil, malformed(err)
	}
	return c, nil
}

var (
	syncMembers  = members{"op", "generation", "scopes"}
	applyMembers = members{"op", "generation", "upsert", "end"}
	endMembers   = members{"ref", "scope_epoch"}
)

// longBody is from how many bytes on a body is not copied whole: what its records
// keep of it is copied a few records at a time, so that one that stays keeps little
// else in memory.
const longBody = 4 << 10

// reading is a reader of body. The text of a long one is body itself: nobody
// changes it meanwhile, and no string of it is kept.
func reading(body []byte) *reader {
	if len(body) <= longBody {
		return newReader(string(body))
	}
	r := newReader(unsafe.String(unsafe.SliceData(body), len(body)))
	r.view = true
	return r
}

func (c *call) decode(r *reader, m members) error {
	s, err := r.object(m, true, func(i int) (err error) {
		switch i {
		case 0:
			_, err = r.string()
		case 1:
			c.generation, err = r.uint()
		case 2:
			err = c.records(r)
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

// records reads the list of records. What is wrong with a long one is found in its
// order, as in a short one.
func (c *call) records(r *reader) error {
	if r.view && c.recordsApart(r) {
		return nil
	}
	c.entries, c.recall = nil, nil
	return r.array(func() error {
		e, err := r.entry()
		c.entries = append(c.entries, e)
		return err
	})
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
