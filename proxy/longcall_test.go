package proxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// TestALongCallIsJudgedAsAShortOne sends bodies as they are, and again with enough
// space in them that the decoder reads them first.
func TestALongCallIsJudgedAsAShortOne(t *testing.T) {
	const scopes = `"generation":1,"scopes":[{"ref":"s","scope_epoch":1,"kind":"head"}]}`
	for _, body := range []string{
		`{"op":"scope.sync",@` + scopes, `{"generation":1,"op":"scope.sync",@"scopes":[]}`, `{"op":"scope\u002esync",@` + scopes,
		`{"op":"scope.sync","op":"scope.apply",@` + scopes, `{"op":"scope.sync",@"generation":1,"scopes":[],"op":"route.open"}`,
		`{"op":"scope.sync",@"op":"unheard.of",` + scopes, `{"op":"unheard.of",@"op":"scope.sync",` + scopes,
		`{"op":"scope.sync",@"generation":1,"scopes":[`, `{"op":"scope.sync",@"generation":1,"scopes":[]} x`, `{"op":"scope.sync"@`,
		`{"op":"scope.sync",@"generation":01,"scopes":[]}`, `{"op":"scope.sync",@"generation":"1","scopes":[]}`, `{"op":"scope.sync",@"generation":1}`,
		`{"op":"scope.sync",@"generation":1,"scopes":[{"ref":"s","scope_epoch":1,"kind":"head","hue":1}]}`,
		`{"op":"scope.apply",@"generation":1,"upsert":[],"end":[]}`, `{"op":"scope.describe",@"owner":{"kind":"reserved","module_id":"owner"},"ref":"s"}`,
		`{"op":"scope.sync",@"generation":1,"scopes":[{"ref":"s","scope_epoch":1,"kind":"head"},{"ref":"s","scope_epoch":1,"kind":"head"}]}`,
		`["scope.sync",@1,[]]`, `{"op":["scope.sync"],@` + scopes, `{@}`, `{"o":1,@"op":"scope.sync"`,
	} {
		for _, registered := range []bool{true, false} {
			short, long := judged(t, strings.Replace(body, "@", " ", 1), registered), judged(t, strings.Replace(body, "@", strings.Repeat(" ", largeCall), 1), registered)
			require.Equal(t, short, long, body)
		}
	}
}

// verdictOnCall is what becomes of a call: it is answered, or the router is to say.
type verdictOnCall struct {
	answer    wire.Type
	body      string
	forwarded bool
	told      []DecisionKind
}

func judged(t *testing.T, body string, registered bool) (v verdictOnCall) {
	r := newRig(t)
	e := r.connect()
	if registered {
		e = r.module("owner")
	}
	e.fromPeer(frame(wire.Request, 7, body))
	if frames := e.toPeer(); len(frames) > 0 {
		v.answer, v.body = r.one(frames).Type, string(frames[0].Body)
	}
	v.forwarded = len(e.toRouter()) > 0
	for _, d := range r.seen {
		v.told = append(v.told, d.Kind)
	}
	return v
}

// TestNobodyWaitsForALongCallsDecoding leaves a sync where it is decoded: the same
// owner's scopes are read and opened meanwhile, and its own data passes.
func TestNobodyWaitsForALongCallsDecoding(t *testing.T) {
	r := newRig(t)
	var jobs []func()
	o, m, c := r.module("owner"), r.module("tool"), r.connect()
	o.sync(1, record("s", 1, directCarrier))
	r.world.work = func(job func()) { jobs = append(jobs, job) }
	long := `{"op":"scope.sync","generation":2,"scopes":[]` + strings.Repeat(" ", largeCall) + `}`
	o.fromPeer(frame(wire.Request, 50, long), data(wire.Push, 3, 1, "passes"))
	require.Len(t, jobs, 1)
	require.Empty(t, o.toPeer())
	require.Equal(t, "passes", string(r.one(o.toRouter()).Body))

	require.Contains(t, string(m.call(wire.OpScopeDescribe, doc{"owner": selector("s", 1)["owner"], "ref": "s"}).Body), `"status":"live"`)
	r.opened(c, m, "s", 1, 1)

	jobs[0]()
	require.Equal(t, uint64(50), r.one(o.toPeer()).Corr)
	require.Len(t, c.toPeer(), 2, "the push and the Goodbye of the route that the call has drained")
}
