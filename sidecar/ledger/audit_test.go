package ledger

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

// hashed are the types that reach a digest: a record's content, an end's, and what
// the chain adds to them.
var hashed = []reflect.Type{
	reflect.TypeFor[table.Record](),
	reflect.TypeFor[table.End](),
	reflect.TypeFor[table.ScopeID](),
	reflect.TypeFor[table.Digest](),
}

// audit walks t and reports each field whose form depends on an order that nothing
// gives it. A list is one unless it is inside a [table.Set], which is sorted.
func audit(t reflect.Type, path string, seen map[reflect.Type]bool) []string {
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint,
		reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return nil
	case reflect.Pointer:
		return audit(t.Elem(), path, seen)
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
	case reflect.Struct:
		if isSet(t) {
			return audit(t.Field(0).Type.Elem(), path+"[]", seen)
		}
		var found []string
		for i := range t.NumField() {
			f := t.Field(i)
			found = append(found, audit(f.Type, path+"."+f.Name, seen)...)
		}
		return found
	}
	return []string{fmt.Sprintf("%s is a %s", path, t)}
}

// isSet says whether t is an instance of package table's set, whose one field is
// the sorted list.
func isSet(t reflect.Type) bool {
	sample := reflect.TypeFor[table.Set[table.ModuleID]]()
	return t.PkgPath() == sample.PkgPath() && strings.HasPrefix(t.Name(), "Set[") &&
		t.NumField() == 1 && t.Field(0).Type.Kind() == reflect.Slice
}

// ADR-0134, decision 4.
func TestADR0134_NoUnsortedSetReachesADigest(t *testing.T) {
	for _, typ := range hashed {
		require.Empty(t, audit(typ, typ.Name(), map[reflect.Type]bool{}))
	}
}

func TestTheAuditSeesWhatItLooksFor(t *testing.T) {
	type inner struct{ Tags []string }
	type planted struct {
		Scopes map[string]struct{}
		Deep   *struct{ In inner }
		Any    any
		Fine   table.Set[table.Principal]
		Ids    [2]string
	}
	require.Equal(t, []string{
		"p.Scopes is a map[string]struct {}",
		"p.Deep.In.Tags is a []string",
		"p.Any is a interface {}",
		"p.Ids is a [2]string",
	}, audit(reflect.TypeFor[planted](), "p", map[reflect.Type]bool{}))
}

// Whatever is in a record is in its digest: a field that is added to the type and
// forgotten in the canonical form fails here. What is left out is named.
func TestEveryFieldOfARecordIsInItsDigest(t *testing.T) {
	leftOut := map[string]bool{"BindProof": true, "digest": true}
	base := canonicalOf(&table.Record{})
	typ := reflect.TypeFor[table.Record]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if leftOut[name] {
			continue
		}
		rec := &table.Record{}
		fill(t, reflect.ValueOf(rec).Elem().Field(i), name)
		require.NotEqual(t, base, canonicalOf(rec), name)
	}
	attrs := reflect.TypeFor[table.Attributes]()
	for i := range attrs.NumField() {
		rec := &table.Record{}
		fill(t, reflect.ValueOf(&rec.Attributes).Elem().Field(i), attrs.Field(i).Name)
		require.NotEqual(t, base, canonicalOf(rec), attrs.Field(i).Name)
	}
}

func canonicalOf(r *table.Record) string { return string(r.Canonical(nil)) }

// fill gives a field a value that is not its zero.
func fill(t *testing.T, v reflect.Value, name string) {
	switch v.Interface().(type) {
	case table.Set[table.Principal]:
		v.Set(reflect.ValueOf(table.NewSet(table.ReservedPrincipal("a"))))
		return
	case table.Set[table.Carrier]:
		v.Set(reflect.ValueOf(table.NewSet(table.Carrier{Principal: table.ReservedPrincipal("a")})))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		fill(t, v.Field(0), name)
	default:
		require.Fail(t, "no value for this field", name)
	}
}
