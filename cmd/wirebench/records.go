package main

import (
	"fmt"
	"strconv"

	"scopeward/proxy/wire"
)

func scopeRef(i int) string { return fmt.Sprintf("session-%05d", i) }

// scopeRecord is record i of an owner: a head that one carrier may take
// anywhere and another to two modules. Another turn is another content.
func scopeRecord(i, turn int) []byte {
	return wire.MustMarshal(object{
		"ref": scopeRef(i), "scope_epoch": 1, "kind": "head",
		"carriers": []object{
			{"principal": reserved(moduleCarrier)},
			{"principal": reserved(moduleSmall), "targets": []string{moduleEcho, moduleEcho2}},
		},
		"attributes": object{"agent_id": fmt.Sprintf("agent-%05d-%d", i, turn)},
	})
}

// scopeSet renders an owner's records once.
type scopeSet [][]byte

func newScopeSet(n int) scopeSet {
	s := make(scopeSet, n)
	for i := range s {
		s[i] = scopeRecord(i, 0)
	}
	return s
}

// sync is a scope.sync of the whole set.
func (s scopeSet) sync(generation int) []byte {
	b := append([]byte(`{"op":"`+wire.OpScopeSync+`","generation":`), strconv.Itoa(generation)...)
	b = append(b, `,"scopes":[`...)
	for i, record := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, record...)
	}
	return append(b, "]}"...)
}

// applyBody is a scope.apply of one record.
func applyBody(generation int, record []byte) []byte {
	b := append([]byte(`{"op":"`+wire.OpScopeApply+`","generation":`), strconv.Itoa(generation)...)
	b = append(append(b, `,"upsert":[`...), record...)
	return append(b, `],"end":[]}`...)
}

func describeBody(i int) []byte {
	return wire.MustMarshal(object{
		"op": wire.OpScopeDescribe, "owner": reserved(moduleOwner), "ref": scopeRef(i),
	})
}

func selector(i int) object {
	return object{"owner": reserved(moduleOwner), "ref": scopeRef(i), "scope_epoch": 1}
}
