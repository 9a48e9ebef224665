package table

// DecodeRecorded reads a record as a log holds it, with the rules of a call's
// records. recorded is its canonical form but for the sets, which are in the order
// in which raw lists them (ADR-0134): it is the canonical form when raw is sorted.
// What belongs to a call or is a secret, replace_only_if_idle and
// bind_proof_sha256, is refused. Bounds and authority are not judged. Errors are
// [FieldError] and hold no value.
func DecodeRecorded(raw []byte) (rec *Record, recorded []byte, err error) {
	rec, err = decodeRecorded(raw, false)
	if err != nil {
		return nil, nil, err
	}
	written, err := decodeRecorded(raw, true)
	if err != nil {
		return nil, nil, err
	}
	return rec, written.Canonical(nil), nil
}

func decodeRecorded(raw []byte, asWritten bool) (*Record, error) {
	r := newReader(string(raw))
	r.asWritten = asWritten
	e, err := r.entry()
	if err == nil {
		err = r.finish()
	}
	switch {
	case err != nil:
		if _, ok := err.(*FieldError); !ok {
			err = &FieldError{What: "is not valid JSON"}
		}
		return nil, err
	case e.record.BindProof != nil:
		return nil, unknownMember(recordMembers[memberProof])
	case e.onlyIfIdle:
		return nil, unknownMember(recordMembers[memberOnlyIfIdle])
	}
	return e.record, nil
}

// readSet makes a set of what r listed. As written, it keeps the list's order and
// its repeats: such a set is good for rendering and for nothing else.
func readSet[E Element[E]](r *reader, list []E) Set[E] {
	if r.asWritten {
		return Set[E]{sorted: list}
	}
	return setOf(list)
}
