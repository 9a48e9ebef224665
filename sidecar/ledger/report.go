package ledger

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"scopeward/table"
)

// ParseOwner reads an owner as an operator writes it: a module id, or
// reserved:ID.
func ParseOwner(s string) table.Principal {
	return table.ReservedPrincipal(strings.TrimPrefix(s, "reserved:"))
}

// MarshalJSONTo writes the entry's own members and previous_sha256.
func (s *Step) MarshalJSONTo(enc *jsontext.Encoder) error {
	b := s.AppendJSON(nil)
	b = appendDigest(append(b[:len(b)-1], `,"previous_sha256":`...), s.Previous)
	return enc.WriteValue(append(b, '}'))
}
