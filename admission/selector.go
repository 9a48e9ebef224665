package admission

import (
	"fmt"

	"scopeward/table"
)

// Selector is the scope member of a route.open (section 4).
type Selector struct {
	Owner        table.Principal
	Ref          string
	Epoch        *uint64 // nil: the open names none, which is refused by name
	BindProof    *string `json:"-"` // a secret; nil: none
	HoldPresence bool
}

// ParseSelector reads a selector.
func ParseSelector(raw []byte) (Selector, error) { return Selector{}, nil }

// Format prints the selector without its proof, under every verb.
func (s Selector) Format(f fmt.State, _ rune) {}
