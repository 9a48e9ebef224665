package admission

import (
	"strconv"
	"unicode/utf8"

	"scopeward/table"
)

// maxName is how many characters of a caller-chosen name a message shows.
const maxName = 64

// quote renders a caller-chosen name so that it can forge neither a log line nor
// the rest of a message: quoted, escaped and cut.
func quote(name string) string {
	end, n := 0, 0
	for end < len(name) && n < maxName {
		_, size := utf8.DecodeRuneInString(name[end:])
		end += size
		n++
	}
	if end < len(name) {
		return strconv.Quote(name[:end]) + "..."
	}
	return strconv.Quote(name)
}

// quotePrincipal renders p with its module id quoted.
func quotePrincipal(p table.Principal) string {
	switch {
	case p.Reserved():
		return "module " + quote(p.ModuleID)
	case p.Kind.String() == "":
		return "a peer without a principal"
	}
	return "a peer of kind " + p.Kind.String()
}
