package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/table"
)

// Entry is one identity, or one end.
type Entry struct {
	Number    uint64 // one more than the entry before it, from 1
	CreatedAt int64  // Unix milliseconds, wall clock
	Reason    Reason
	Cause     table.Cause // of an end, else 0
	ID        table.ScopeID
	// Record is the content: canonical, but for an imported entry, which keeps the
	// order of its sets. It is nil for an end, and where [Compact] took it.
	Record       jsontext.Value
	RecordSHA256 table.Digest
	PrefixSHA256 table.Digest
	Origin       *Origin // of an imported entry, else nil
}

// Origin is what an imported entry was where it was written.
type Origin struct {
	Number       uint64
	CreatedAt    int64 // Unix milliseconds
	Reason       Reason
	PrefixSHA256 table.Digest
}

// Ended says whether the entry is an end.
func (e *Entry) Ended() bool { return e.Cause != 0 }

// Compacted says whether the entry's record was taken.
func (e *Entry) Compacted() bool { return e.Record == nil && !e.Ended() }

// endDigest is the record_sha256 of an end.
func endDigest(id table.ScopeID, c table.Cause) table.Digest {
	b := append([]byte(`{"cause":"`), c.String()...)
	b = appendString(append(b, `","ref":`...), id.Ref)
	b = strconv.AppendUint(append(b, `,"scope_epoch":`...), id.Epoch, 10)
	return sha256.Sum256(append(b, '}'))
}

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendDigest(b []byte, d table.Digest) []byte {
	return append(hex.AppendEncode(append(b, '"'), d[:]), '"')
}

// AppendJSON appends the entry's JSON form, which is also its form on disk and
// that of a line of [Import].
func (e *Entry) AppendJSON(b []byte) []byte {
	b = strconv.AppendUint(append(b, `{"number":`...), e.Number, 10)
	b = strconv.AppendInt(append(b, `,"created_at":`...), e.CreatedAt, 10)
	b = append(append(append(b, `,"reason":"`...), e.Reason.String()...), '"')
	if e.Ended() {
		b = append(append(append(b, `,"cause":"`...), e.Cause.String()...), '"')
	}
	b = append(append(append(b, `,"owner":{"kind":"`...), e.ID.Owner.Kind.String()...), '"')
	if e.ID.Owner.Reserved() {
		b = appendString(append(b, `,"module_id":`...), e.ID.Owner.ModuleID)
	}
	b = appendString(append(b, `},"ref":`...), e.ID.Ref)
	b = strconv.AppendUint(append(b, `,"scope_epoch":`...), e.ID.Epoch, 10)
	if e.Record != nil {
		b = append(append(b, `,"record":`...), e.Record...)
	}
	b = appendDigest(append(b, `,"record_sha256":`...), e.RecordSHA256)
	b = appendDigest(append(b, `,"prefix_sha256":`...), e.PrefixSHA256)
	if o := e.Origin; o != nil {
		b = strconv.AppendUint(append(b, `,"origin":{"number":`...), o.Number, 10)
		b = strconv.AppendInt(append(b, `,"created_at":`...), o.CreatedAt, 10)
		b = append(append(append(b, `,"reason":"`...), o.Reason.String()...), '"')
		b = append(appendDigest(append(b, `,"prefix_sha256":`...), o.PrefixSHA256), '}')
	}
	return append(b, '}')
}

// MarshalJSONTo writes the entry's JSON form.
func (e *Entry) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteValue(e.AppendJSON(nil)) }

// document is an entry as JSON has it.
type document struct {
	Number       uint64          `json:"number"`
	CreatedAt    int64           `json:"created_at"`
	Reason       string          `json:"reason"`
	Cause        string          `json:"cause"`
	Owner        table.Principal `json:"owner"`
	Ref          string          `json:"ref"`
	Epoch        *uint64         `json:"scope_epoch"`
	Record       jsontext.Value  `json:"record"`
	RecordSHA256 string          `json:"record_sha256"`
	PrefixSHA256 string          `json:"prefix_sha256"`
	Origin       *struct {
		Number       uint64 `json:"number"`
		CreatedAt    int64  `json:"created_at"`
		Reason       string `json:"reason"`
		PrefixSHA256 string `json:"prefix_sha256"`
	} `json:"origin"`
}

// parseEntry reads an entry strictly. Its errors quote nothing of raw.
func parseEntry(raw []byte) (Entry, error) {
	var d document
	if err := json.Unmarshal(raw, &d, json.RejectUnknownMembers(true)); err != nil {
		var at *json.SemanticError
		if errors.As(err, &at) && at.JSONPointer != "" {
			return Entry{}, fmt.Errorf("%s is not what an entry holds there", quote(string(at.JSONPointer)))
		}
		return Entry{}, errors.New("not one JSON object of an entry")
	}
	e := Entry{
		Number: d.Number, CreatedAt: d.CreatedAt, Reason: parseReason(d.Reason),
		Record: d.Record,
	}
	switch {
	case d.Number == 0:
		return Entry{}, errors.New(`"number" is missing or 0`)
	case e.Reason == 0:
		return Entry{}, errors.New(`"reason" is missing or unknown`)
	case d.Owner.Kind == 0:
		return Entry{}, errors.New(`"owner" is missing`)
	case d.Ref == "":
		return Entry{}, errors.New(`"ref" is missing or empty`)
	case d.Epoch == nil:
		return Entry{}, errors.New(`"scope_epoch" is missing`)
	}
	e.ID = table.ScopeID{Key: table.Key{Owner: d.Owner, Ref: d.Ref}, Epoch: *d.Epoch}
	if d.Cause != "" {
		if e.Cause = parseCause(d.Cause); e.Cause == 0 {
			return Entry{}, errors.New(`"cause" is unknown`)
		}
	}
	if (e.Reason == Ended) != e.Ended() && e.Reason != Imported {
		return Entry{}, errors.New(`"cause" belongs to an end, and to nothing else`)
	}
	if e.Ended() && e.Record != nil {
		return Entry{}, errors.New(`an end has no "record"`)
	}
	var ok bool
	if e.RecordSHA256, ok = parseDigest(d.RecordSHA256); !ok {
		return Entry{}, errors.New(`"record_sha256" is not 64 lowercase hexadecimal characters`)
	}
	if e.PrefixSHA256, ok = parseDigest(d.PrefixSHA256); !ok {
		return Entry{}, errors.New(`"prefix_sha256" is not 64 lowercase hexadecimal characters`)
	}
	if o := d.Origin; o != nil {
		e.Origin = &Origin{Number: o.Number, CreatedAt: o.CreatedAt, Reason: parseReason(o.Reason)}
		if e.Origin.PrefixSHA256, ok = parseDigest(o.PrefixSHA256); !ok || e.Origin.Reason == 0 {
			return Entry{}, errors.New(`"origin" is malformed`)
		}
	}
	if (e.Reason == Imported) != (e.Origin != nil) {
		return Entry{}, errors.New(`"origin" belongs to an imported entry, and to nothing else`)
	}
	return e, nil
}

func parseDigest(s string) (d table.Digest, ok bool) {
	if len(s) != hex.EncodedLen(len(d)) {
		return d, false
	}
	n, err := hex.Decode(d[:], []byte(s))
	return d, err == nil && n == len(d) && d.String() == s
}

// maxQuoted is how much of a name that a caller chose is shown, in bytes.
const maxQuoted = 64

// quote makes a caller's name fit for an error or a terminal.
func quote(s string) string { return strconv.QuoteToASCII(s[:min(len(s), maxQuoted)]) }
