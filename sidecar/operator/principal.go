package operator

import (
	"fmt"
	"strings"

	"scopeward/table"
)

// principalText is a principal as the API has it: direct, or reserved:ID with
// the id as it is.
func principalText(p table.Principal) string {
	if p.Reserved() {
		return p.Kind.String() + ":" + p.ModuleID
	}
	return p.Kind.String()
}

// parsePrincipal reads what an operator names a principal by: direct,
// unverified, reserved:ID, or a module id alone.
func parsePrincipal(s string) (table.Principal, error) {
	for _, k := range []table.PrincipalKind{table.Direct, table.Unverified} {
		if s == k.String() {
			return table.Principal{Kind: k}, nil
		}
	}
	id := strings.TrimPrefix(s, table.Reserved.String()+":")
	if id == "" {
		return table.Principal{}, fmt.Errorf("%s is no principal: give direct, a module id or reserved:ID", Quote(s))
	}
	return table.ReservedPrincipal(id), nil
}

// parseOwner reads an owner of scopes. Only a module can be one.
func parseOwner(s string) (table.Principal, error) {
	p, err := parsePrincipal(s)
	if err == nil && !p.Reserved() {
		err = fmt.Errorf("%s owns no scopes: give a module id or reserved:ID", Quote(s))
	}
	return p, err
}
