package scopewatch

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/proxy/wire"
)

// fakeRouter is a connection whose other end the test plays.
type fakeRouter struct {
	t    *testing.T
	w    *Watcher
	corr uint64
	sent []wire.Frame
}

type doc = map[string]any

var (
	owner = Module("owner")
	other = Module("other")
	bound = Binding{owner, "s", 7}
)

// newFake makes a watcher that follows a fake router with scope.subscribe.
func newFake(t *testing.T, p Params) *fakeRouter {
	f := &fakeRouter{t: t, w: New(p)}
	f.w.Follow(f, []string{wire.OpScopeSubscribe})
	return f
}

func (f *fakeRouter) NewCorr() uint64 { f.corr++; return f.corr }

func (f *fakeRouter) Send(h wire.Header, body []byte) {
	h.Len = uint32(len(body))
	f.sent = append(f.sent, wire.Frame{Header: h, Body: body})
}

// request takes the next request that was sent, which must be op.
func (f *fakeRouter) request(op string) (corr uint64, body doc) {
	f.t.Helper()
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	require.NotEmpty(f.t, f.sent)
	next := f.sent[0]
	f.sent = f.sent[1:]
	require.Equal(f.t, wire.Request, next.Type)
	require.NoError(f.t, json.Unmarshal(next.Body, &body))
	require.Equal(f.t, op, body["op"])
	return next.Corr, body
}

// quiet says that nothing was sent.
func (f *fakeRouter) quiet() {
	f.t.Helper()
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	require.Empty(f.t, f.sent)
}

func (f *fakeRouter) deliver(ty wire.Type, corr uint64, body any) {
	f.t.Helper()
	var b []byte
	if body != nil {
		b = wire.MustMarshal(body)
	}
	require.True(f.t, f.w.Take(wire.Frame{Header: wire.Header{Type: ty, Corr: corr, Len: uint32(len(b))}, Body: b}))
}

func at(seq int) doc { return doc{"daemon_incarnation": "i", "seq": seq} }

func stamp(p Principal, ref string, epoch int) doc {
	return doc{"owner": p, "ref": ref, "scope_epoch": epoch, "kind": "head", "owner_authorized": false}
}

func snapshot(seq int, synced []Principal, stamps ...doc) doc {
	return doc{"cursor": at(seq), "kind": "snapshot", "owners_synced": synced, "scopes": append([]doc{}, stamps...)}
}

func happened(seq int, kind string, p Principal, ref string, epoch int) doc {
	d := doc{"cursor": at(seq), "kind": kind, "owner": p, "ref": ref, "scope_epoch": epoch}
	if kind != kindEnded {
		d["scope"] = stamp(p, ref, epoch)
	}
	return d
}

func firstSync(seq int, p Principal, stamps ...doc) doc {
	return doc{"cursor": at(seq), "kind": "synced", "owner": p, "scopes": append([]doc{}, stamps...)}
}

func refusal(code string) doc { return doc{"code": code, "message": "no"} }

// remembers says what memory tells of a binding, false when it can't.
func (f *fakeRouter) remembers(b Binding) (Case, bool) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	v, ok := f.w.judgeLocked(b)
	return v.Case, ok
}

func (f *fakeRouter) knows(want Case, b Binding) {
	f.t.Helper()
	got, ok := f.remembers(b)
	require.True(f.t, ok, "memory can tell")
	require.Equal(f.t, want.String(), got.String())
}

func (f *fakeRouter) forgot(b Binding) {
	f.t.Helper()
	_, ok := f.remembers(b)
	require.False(f.t, ok, "memory can't tell")
}

// pass lets d of a bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
