package table

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// vector is the golden apply body of the wire.
const vector = `{"end":[{"ref":"worker-1","scope_epoch":1},{"ref":"worker-0","scope_epoch":9}],"generation":8,"op":"scope.apply",` +
	`"upsert":[{"attributes":{"agent_id":"agent-7","run_id":"run:7/step-2"},"carriers":[{"principal":{"kind":"direct"}}],` +
	`"expires_at_ms":1725000030000,"kind":"ephemeral","ref":"run-1","scope_epoch":1}]}`

func TestS3_TheGoldenApplyDecodesAndEncodesAgain(t *testing.T) {
	claim(t, "11.old-bodies", "3.reply")
	call, refused := DecodeApply([]byte(vector))
	require.Nil(t, refused)
	require.Equal(t, uint64(8), call.generation)
	require.Equal(t, []end{{ref: "worker-1", epoch: 1}, {ref: "worker-0", epoch: 9}}, call.ends)
	require.JSONEq(t, `{"attributes":{"agent_id":"agent-7","run_id":"run:7/step-2"},"carriers":[{"principal":{"kind":"direct"}}],
		"expires_at_ms":1725000030000,"kind":"ephemeral","ref":"run-1","scope_epoch":1}`, string(call.entries[0].record.Canonical(nil)))
	b := newBed(t)
	b.now = 1725000000000
	b.sync("core", "worker-1@1")
	a, refused := b.Table.Apply(b.claim("core"), call, b.now)
	require.Nil(t, refused)
	require.JSONEq(t, `{"op":"scope.apply","generation":8,"results":[{"ref":"run-1","scope_epoch":1,"outcome":"created","version":2}],
		"end_results":[{"ref":"worker-1","scope_epoch":1,"outcome":"ended"},{"ref":"worker-0","scope_epoch":9,"outcome":"not_live"}],
		"ended":[{"ref":"worker-1","scope_epoch":1}]}`, string(a.AppendReply(nil)))
	a = b.sync("hist")
	require.JSONEq(t, `{"op":"scope.sync","generation":1,"results":[]}`, string(a.AppendReply(nil)), "an empty ended list is left out")
	b.gens["core"] = 100
	require.JSONEq(t, `{"op":"scope.apply","generation":101,"results":[],"end_results":[]}`, string(b.apply("core").AppendReply(nil)), "end results are not")
}

func TestS11_MalformedBodies(t *testing.T) {
	claim(t, "11.records", "3.apply.order")
	const rec = `{"ref":"s","scope_epoch":1,"kind":"head"`
	sync := func(record string) string { return `{"generation":1,"scopes":[` + record + `]}` }
	for _, body := range []string{
		``, `{`, `[]`, `null`, `"x"`, `{}`, `{"generation":1}`, `{"scopes":[]}`, sync(rec+`}`) + `x`, sync(rec+`}`) + `{}`,
		`{"generation":1,"scopes":null}`, `{"generation":1,"scopes":{}}`, `{"generation":1,"scopes":"x"}`,
		`{"generation":null,"scopes":[]}`, `{"generation":"1","scopes":[]}`, `{"generation":-1,"scopes":[]}`, `{"generation":1.0,"scopes":[]}`,
		`{"generation":1e3,"scopes":[]}`, `{"generation":18446744073709551616,"scopes":[]}`, `{"generation":-0,"scopes":[]}`,
		`{"generation":1,"generation":1,"scopes":[]}`, `{"op":1,"generation":1,"scopes":[]}`, `[1,[]]`,
		sync(`1`), sync(`null`), sync(`[]`), sync(`"s"`), sync(`["s",1,"head"]`), sync(`{}`),
		sync(`{"scope_epoch":1,"kind":"head"}`), sync(`{"ref":"s","kind":"head"}`), sync(`{"ref":"s","scope_epoch":1}`),
		sync(`{"ref":null,"scope_epoch":1,"kind":"head"}`), sync(`{"ref":1,"scope_epoch":1,"kind":"head"}`),
		sync(`{"ref":"s","scope_epoch":"1","kind":"head"}`), sync(`{"ref":"s","scope_epoch":-1,"kind":"head"}`),
		sync(`{"ref":"s","scope_epoch":1.5,"kind":"head"}`), sync(`{"ref":"s","scope_epoch":null,"kind":"head"}`),
		sync(rec + `,"ref":"s"}`), sync(rec + `,"\u0072ef":"s"}`), sync(rec + `,"kind":"head"}`),
		sync(rec + `,"attributes":null}`), sync(rec + `,"attributes":[]}`), sync(rec + `,"attributes":{"delegates":null}}`),
		sync(rec + `,"attributes":{"delegates":1}}`), sync(rec + `,"attributes":{"delegates":true,"delegates":true}}`),
		sync(rec + `,"attributes":{"agent_id":1}}`), sync(rec + `,"replace_only_if_idle":null}`), sync(rec + `,"replace_only_if_idle":"true"}`),
		sync(rec + `,"expires_at_ms":-1}`), sync(rec + `,"expires_at_ms":"1"}`), sync(rec + `,"expires_at_ms":1.5}`),
		sync(rec + `,"carriers":null}`), sync(rec + `,"carriers":{}}`), sync(rec + `,"carriers":["reserved:aft"]}`), sync(rec + `,"carriers":[{}]}`),
		sync(rec + `,"carriers":[{"kind":"direct"}]}`), sync(rec + `,"carriers":[[{"kind":"direct"}]]}`),
		sync(rec + `,"carriers":[{"principal":{"kind":"direct"},"targets":"x"}]}`), sync(rec + `,"carriers":[{"principal":{"kind":"direct"},"targets":[1]}]}`),
		sync(rec + `,"child_owners":null}`), sync(rec + `,"child_owners":[{"module_id":"x"}]}`), sync(rec + `,"child_owners":[["reserved","x"]]}`),
		sync(rec + `,"parent":[]}`), sync(rec + `,"parent":{}}`),
		sync("{\"ref\":\"\xff\",\"scope_epoch\":1,\"kind\":\"head\"}"), sync(`{"ref":"\ud800","scope_epoch":1,"kind":"head"}`),
		sync(rec + `,}`), sync(rec + `}`)[1:], sync(rec + `},`),
	} {
		call, refused := DecodeSync([]byte(body))
		require.NotNil(t, refused, body)
		require.Nil(t, call)
		require.Equal(t, CodeInvalidControlBody, refused.Code)
		require.NotEmpty(t, refused.Message)
	}
	for _, body := range []string{
		`{"generation":2,"upsert":[]}`, `{"generation":2,"end":[]}`, `{"upsert":[],"end":[]}`, `{"generation":2,"upsert":{},"end":[]}`,
		`{"generation":2,"upsert":[],"end":[{"ref":"a"}]}`, `{"generation":2,"upsert":[],"end":[{"scope_epoch":1}]}`,
		`{"generation":2,"upsert":[],"end":[{"ref":"a","scope_epoch":"1"}]}`, `{"generation":2,"upsert":[],"end":["a"]}`,
		`{"generation":2,"upsert":null,"end":null}`, `{"generation":2,"upsert":[],"end":[["a",1]]}`, `{"generation":2,"scopes":[]}`,
	} {
		_, refused := DecodeApply([]byte(body))
		require.NotNil(t, refused, body)
		require.Equal(t, CodeInvalidControlBody, refused.Code)
	}
}

func TestS11_NullIsAbsentWhereAMemberIsOptional(t *testing.T) {
	claim(t, "11.old-bodies")
	rec := decodeOne(t, `{"ref":"s","scope_epoch":1,"kind":"head","bind_proof_sha256":null,"expires_at_ms":null,"parent":null,
		"child_owners":[],"carriers":[{"principal":{"kind":"direct"},"targets":null}],"attributes":{"agent_id":null,"flow_id":null,"run_id":null}}`)
	require.Equal(t, decodeOne(t, "s@1 carrier=direct").Digest(), rec.Digest())
	require.False(t, rec.Carriers.Sorted()[0].Targeted)
}

func TestS11_AMessageNamesMembersAndHoldsNoValue(t *testing.T) {
	claim(t, "11.records")
	const secret = "5ec7e7"
	for _, body := range []string{
		`{"generation":1,"scopes":[{"ref":"s","scope_epoch":1,"kind":"` + secret + `"}]}`,
		`{"generation":1,"scopes":[{"ref":"s","scope_epoch":1,"kind":"head","bind_proof_sha256":"` + secret + `"}]}`,
		`{"generation":1,"scopes":[{"ref":` + secret + `}]}`,
		`{"generation":"` + secret + `","scopes":[]}`,
	} {
		_, refused := DecodeSync([]byte(body))
		require.NotContains(t, refused.Message, secret, body)
	}
	_, refused := DecodeSync([]byte(`{"generation":1,"scopes":[{"` + strings.Repeat("x", 200) + `\n":1}]}`))
	require.Less(t, len(refused.Message), 120)
	b := newBed(t)
	message := b.refusedSync(CodeInvalidControlBody, "core", `{"ref":"a\nforged","scope_epoch":1,"kind":"head"}`, `{"ref":"a\nforged","scope_epoch":1,"kind":"head"}`)
	require.NotContains(t, message, "\n", "a name cannot forge a line")
}

func TestS11_APrincipalIsReadStrictlyByItself(t *testing.T) {
	claim(t, "11.records")
	for text, want := range map[string]Principal{
		`{"kind":"reserved","module_id":"aft"}`: ReservedPrincipal("aft"), `{"module_id":"aft","kind":"reserved"}`: ReservedPrincipal("aft"),
		`{"kind":"direct"}`: {Kind: Direct}, `{"kind":"unverified"}`: {Kind: Unverified},
	} {
		var p Principal
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		require.Equal(t, want, p)
		out, err := json.Marshal(p)
		require.NoError(t, err)
		require.JSONEq(t, text, string(out))
	}
	for _, bad := range []string{`{}`, `[]`, `null`, `"direct"`, `{"kind":"reserved"}`, `{"kind":"direct","module_id":"x"}`, `{"kind":"reserved","module_id":"x","y":1}`, `{"kind":"direct","kind":"direct"}`} {
		var p Principal
		require.Error(t, json.Unmarshal([]byte(bad), &p), bad)
	}
}

// TestPure fails on an import that a pure core has no business with.
func TestPure(t *testing.T) {
	forbidden := map[string]string{
		`"net`: "the core opens no socket", `"os"`: "nor a file", `"time"`: "nor has it a clock: now arrives as Unix milliseconds",
		`"context"`: "nor does it wait", `"encoding/json"`: "JSON is read strictly, by one library", `go.uber.org/`: "nor does it log",
		`cilium/`: "nor attribute", `scopeward/`: "and it imports none of ours",
	}
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		for what, why := range forbidden {
			require.NotContains(t, string(src), what, "%s: %s", path, why)
		}
	}
}

func FuzzDecodeSync(f *testing.F) {
	f.Add([]byte(syncBody(1, "s@1 carrier=aft->a,b child=hist agent=a run=r proof=ab parent=core/p@1 expires=1")))
	f.Add([]byte(`{"generation":1,"scopes":[{"ref":"\u0073","scope_epoch":18446744073709551615,"kind":"head"}],"x":[[]]}`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzSync(t, body) })
}

// fuzzSync decodes and applies body twice: the same content is unchanged, and its
// canonical form decodes to the same digest.
func fuzzSync(t *testing.T, body []byte) {
	call, refused := DecodeSync(body)
	if refused != nil {
		require.NotEmpty(t, refused.Code)
		return
	}
	for _, e := range call.entries {
		canonical := string(e.record.Canonical(nil))
		again, refused := DecodeSync([]byte(`{"generation":1,"scopes":[` + canonical + `]}`))
		require.Nil(t, refused, canonical)
		require.Equal(t, e.record.Digest(), again.entries[0].record.Digest())
	}
	b := newBed(t)
	first, refused := b.Table.Sync(b.claim("core"), call, b.now)
	if refused != nil {
		require.Empty(t, b.dump())
		return
	}
	var v any
	require.NoError(t, json.Unmarshal(first.AppendReply(nil), &v))
	again, refused := DecodeApply([]byte(fmt.Sprintf(`{"generation":%d,"upsert":[],"end":[]}`, first.Generation)))
	require.Nil(t, refused)
	_, refused = b.Table.Apply(b.claim("core"), again, b.now)
	require.Equal(t, CodeSyncStale, refused.Code)
	for i, r := range first.Results {
		if r.Outcome != Refused {
			require.Equal(t, Created, r.Outcome)
			require.Equal(t, StatusLive, b.Describe(Key{ReservedPrincipal("core"), r.Ref}).Status, "%d", i)
		}
	}
}

func FuzzDecodeApply(f *testing.F) {
	f.Add([]byte(vector))
	f.Add([]byte(applyBody(2, "s@1", "end t@1")))
	f.Fuzz(func(t *testing.T, body []byte) {
		call, refused := DecodeApply(body)
		if refused != nil {
			require.NotEmpty(t, refused.Code)
			return
		}
		b := newBed(t)
		b.sync("core")
		before := b.dump()
		a, refused := b.Table.Apply(b.claim("core"), call, b.now)
		if refused != nil {
			require.Equal(t, before, b.dump())
			return
		}
		var v any
		require.NoError(t, json.Unmarshal(a.AppendReply(nil), &v))
		require.Len(t, a.Results, len(call.results))
	})
}

// allocated is the heap in use after a collection, in bytes.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
