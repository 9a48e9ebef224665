package table

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// shuffled is one record with its sets in an order that r picks, some entries
// repeated.
func shuffled(r *rand.Rand) string {
	targets := []string{"plexus", "prefrontal-core", "aft", "b", "a"}
	children := []string{"child=hist", "child=direct", "child=x", "child=hist"}
	r.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	carriers := []string{"carrier=aft->" + strings.Join(targets, ","), "carrier=aft", "carrier=direct", "carrier=aft->b,a,b", "carrier=direct"}
	words := append(slices.Clone(carriers), children...)
	r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return "s@7 worker agent=a parent=core/p@1 expires=1000000000500 proof=ab " + strings.Join(words, " ")
}

func decodeOne(t testing.TB, line string) *Record {
	t.Helper()
	call, refused := DecodeSync([]byte(syncBody(1, line)))
	require.Nil(t, refused)
	return call.entries[0].record
}

func TestADR134_ARecordInAnotherOrderIsUnchanged(t *testing.T) {
	claim(t, "134.order")
	b := newBed(t)
	r := rand.New(rand.NewPCG(1, 2))
	b.sync("core", shuffled(r), "p@1")
	bind := b.reserve("core/s", "direct", "x", false)
	route := b.open("core/s", "aft", "x")
	version := b.version("core/s")
	for range 50 {
		a := b.apply("core", shuffled(r))
		require.Equal(t, "unchanged", outcome(a))
		require.Empty(t, a.Drains)
	}
	require.Equal(t, version, b.version("core/s"))
	require.Equal(t, Committed, b.Commit(bind))
	require.True(t, b.Release(route))
	require.Equal(t, "updated", outcome(b.apply("core", shuffled(r)+" carrier=aft->b")), "another entry is another set")
}

func TestADR134_EveryFormIsSorted(t *testing.T) {
	claim(t, "134.sorted")
	rec := decodeOne(t, shuffled(rand.New(rand.NewPCG(3, 4))))
	require.Equal(t, `{"attributes":{"agent_id":"a"},"carriers":[{"principal":{"kind":"reserved","module_id":"aft"}},`+
		`{"principal":{"kind":"reserved","module_id":"aft"},"targets":["a","aft","b","plexus","prefrontal-core"]},`+
		`{"principal":{"kind":"reserved","module_id":"aft"},"targets":["a","b"]},{"principal":{"kind":"direct"}}],`+
		`"child_owners":[{"kind":"reserved","module_id":"hist"},{"kind":"reserved","module_id":"x"},{"kind":"direct"}],`+
		`"expires_at_ms":1000000000500,"kind":"worker","parent":{"owner":{"kind":"reserved","module_id":"core"},"ref":"p","scope_epoch":1},`+
		`"ref":"s","scope_epoch":7}`, string(rec.Canonical(nil)))
	canonical := jsontext.Value(rec.Canonical(nil))
	sorted := slices.Clone(canonical)
	require.NoError(t, sorted.Format(jsontext.ReorderRawObjects(true)))
	require.Equal(t, string(sorted), string(canonical), "members are in order too")
}

const digestSeed = "SCOPEWARD_DIGEST_SEED"

// TestADR134_OneDigestInEveryProcess runs this test in processes of their own,
// each with another insertion order and Go's own map seed.
func TestADR134_OneDigestInEveryProcess(t *testing.T) {
	claim(t, "134.digest")
	if seed := os.Getenv(digestSeed); seed != "" {
		b := newBed(t)
		b.sync("core", shuffled(rand.New(rand.NewPCG(number(seed), 0))), "p@1")
		fmt.Printf("digest=%s\n", b.Scopes("core")[1].Record.Digest())
		return
	}
	want := decodeOne(t, shuffled(rand.New(rand.NewPCG(0, 0)))).Digest().String()
	require.NotEqual(t, strings.Repeat("0", 64), want)
	for seed := range 20 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestADR134_OneDigestInEveryProcess$", "-test.timeout=20s")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", digestSeed, seed+1))
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), "digest="+want)
	}
}

// digested are the record's members that reach the digest. What is not here must
// not change it.
var digested = map[string]bool{
	"Ref": true, "Epoch": true, "Kind": true, "ExpiresAtMS": true, "Parent": true,
	"ChildOwners": true, "Carriers": true, "Attributes": true,
	"BindProof": false, // a secret
	"digest":    false, // the digest itself
}

func TestADR134_TheAuditOfWhatReachesADigest(t *testing.T) {
	claim(t, "134.audit", "134.proof")
	require.Empty(t, undeclared(reflect.TypeFor[Record](), "Record"))
	for _, bad := range []any{
		struct{ M map[string]bool }{}, struct{ L []string }{}, struct{ F float64 }{}, struct{ A any }{},
		struct {
			S Set[Carrier]
			T *struct{ L []ModuleID }
		}{}, struct{ C chan int }{}, struct{ A [2][]int }{},
	} {
		require.NotEmpty(t, undeclared(reflect.TypeOf(bad), "bad"), "%T", bad)
	}
	base := decodeOne(t, shuffled(rand.New(rand.NewPCG(0, 0))))
	for i := range reflect.TypeFor[Record]().NumField() {
		field := reflect.TypeFor[Record]().Field(i)
		inDigest, declared := digested[field.Name]
		require.True(t, declared, "Record.%s reaches the digest or not: declare it", field.Name)
		if !field.IsExported() {
			continue
		}
		changed := *base
		reflect.ValueOf(&changed).Elem().Field(i).SetZero()
		require.Equal(t, inDigest, changed.computeDigest() != base.computeDigest(), field.Name)
	}
}

// undeclared is the first path in typ whose value has no one order or no one
// form. Sets are declared: they are sorted when they are made.
func undeclared(typ reflect.Type, path string) string {
	if strings.HasPrefix(typ.Name(), "Set[") && typ.PkgPath() == reflect.TypeFor[Record]().PkgPath() {
		return undeclared(typ.Field(0).Type.Elem(), path+"[]")
	}
	switch typ.Kind() {
	case reflect.Bool, reflect.String, reflect.Uint8, reflect.Uint64:
		return ""
	case reflect.Pointer, reflect.Array:
		return undeclared(typ.Elem(), path)
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if where := undeclared(f.Type, path+"."+f.Name); where != "" {
				return where
			}
		}
		return ""
	}
	return path + " is a " + typ.Kind().String()
}

func TestADR134_SetsKeepTheirOperations(t *testing.T) {
	claim(t, "134.order")
	abc, b := NewSet[ModuleID]("c", "a", "b", "a"), NewSet[ModuleID]("b")
	require.Equal(t, 3, abc.Len())
	require.True(t, abc.Contains("b"))
	require.False(t, abc.Contains("d"))
	require.True(t, b.Subset(abc))
	require.False(t, abc.Subset(b))
	require.True(t, Set[ModuleID]{}.Subset(b))
	require.Equal(t, []ModuleID{"a", "c"}, abc.Difference(b).Sorted())
	require.True(t, abc.Difference(b).Union(b).Equal(abc))
	require.False(t, abc.Equal(b))
	in := []ModuleID{"z", "y"}
	NewSet(in...)
	require.Equal(t, []ModuleID{"z", "y"}, in, "the caller's slice is its own")
}
