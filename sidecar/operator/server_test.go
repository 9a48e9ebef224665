package operator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/admission"
	"scopeward/proxy"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

func TestScopesAndRoutes(t *testing.T) {
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	s.proxy.sessions = []proxy.SessionInfo{{Conn: 11, Role: "client", Routes: []proxy.RouteInfo{{Channel: 3, Epoch: 2, Module: "tool", Route: 1}}}}
	s.launches.processes = map[proxy.ConnID]launch.Process{11: {PID: 99, Start: 1, Exe: "/bin/client"}}

	scopes, err := s.Scopes(t.Context(), api.Filter{Owner: "core", Ref: "good"})
	require.NoError(t, err)
	require.Equal(t, s.proxy.world.Incarnation, scopes.Incarnation)
	require.Len(t, scopes.Scopes, 1)
	sc := scopes.Scopes[0]
	require.True(t, sc.ProofRequired)
	require.Equal(t, []api.Carrier{{Principal: "reserved:aft", Targets: []string{"plexus"}}, {Principal: "direct"}}, sc.Carriers)
	require.Equal(t, []string{"reserved:historian"}, sc.ChildOwners)
	require.EqualValues(t, 1, sc.Routes)
	none, err := s.Scopes(t.Context(), api.Filter{Owner: "reserved:core", Ref: "other"})
	require.NoError(t, err)
	require.Empty(t, none.Scopes)

	routes, err := s.Routes(t.Context(), api.Filter{Target: "tool"})
	require.NoError(t, err)
	require.Equal(t, []api.Route{{
		Route: 1, Live: true, Owner: "reserved:core", Ref: "good", ScopeEpoch: 1, Principal: "direct", Conn: 11,
		Channel: 3, Epoch: 2, PID: 99, Exe: "/bin/client", Target: "tool", TargetConn: 12,
	}}, routes.Routes)

	st, err := s.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, api.Totals{Sessions: 1, Synced: 1, Scopes: 1, Routes: 1}, st.Totals)
	require.Equal(t, "core", st.Owners[0].Owner)
	require.EqualValues(t, 2, st.Owners[0].Authority)
}

func TestExplainAsksTheRules(t *testing.T) {
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	s.proxy.sessions = []proxy.SessionInfo{
		{Conn: 12, Role: "module", Module: "plexus", Provides: []admission.Capability{"flow-scopes/v1"}},
		{Conn: 13, Role: "module", Module: "plexus", Provides: []admission.Capability{"call-modes/v1"}},
	}
	s.launches.info = launch.Info{
		Launches:      []launch.LaunchInfo{{ModuleID: "plexus", Generation: 4}, {ModuleID: "plexus", Generation: 5, Current: true}},
		Registrations: []launch.RegistrationInfo{{ModuleID: "plexus", Conn: 12, Generation: 4}, {ModuleID: "plexus", Conn: 13, Generation: 5}},
	}
	s.launches.configured = map[string]bool{"late": true}
	one, two := uint64(1), uint64(2)
	for _, c := range []struct {
		open          api.Opening
		verdict, code string
		rule, roster  string
	}{
		{api.Opening{Owner: "core", Ref: "good", Epoch: &one, As: "aft", To: "plexus"}, "admitted", "", "4 admission", ""},
		{api.Opening{Owner: "core", Ref: "good", Epoch: &one, As: "aft", To: "other"}, "refused", "scope_not_carrier", "4 carrier", ""},
		{api.Opening{Owner: "core", Ref: "good", Epoch: &one, As: "direct", To: "plexus"}, "refused", "scope_bind_proof_required", "4 bind proof", ""},
		{api.Opening{Owner: "core", Ref: "good", Epoch: &two, As: "aft", To: "plexus"}, "refused", "scope_ended", "4 epoch live", ""},
		{api.Opening{Owner: "core", Ref: "good", As: "aft", To: "plexus"}, "refused", "scope_epoch_required", "4 epoch named", ""},
		{api.Opening{Owner: "late", Ref: "x", Epoch: &one, As: "direct", To: "plexus"}, "refused", "scope_not_synced", "4 owner synced", "configured"},
		{api.Opening{Owner: "never", Ref: "x", Epoch: &one, As: "direct", To: "plexus"}, "refused", "scope_not_live", "4 owner synced", "not_configured"},
		{api.Opening{Owner: "direct", Ref: "x", Epoch: &one, As: "direct", To: "plexus"}, "refused", "scope_not_live", "4 owner synced", ""},
	} {
		e, err := s.Explain(t.Context(), c.open)
		require.NoError(t, err)
		require.Equal(t, []string{c.verdict, c.code, c.rule, c.roster}, []string{e.Verdict, e.Code, e.Rule, e.Roster}, "%+v", c.open)
		require.Equal(t, admission.Code(c.code).Retryable(), e.Retryable)
	}
	e, err := s.Explain(t.Context(), api.Opening{Owner: "core", Ref: "good", Epoch: &one, As: "reserved:aft", To: "plexus"})
	require.NoError(t, err)
	require.Equal(t, []string{"call-modes/v1"}, e.Provides, "the current launch's registration counts")
	require.Equal(t, "registration", e.ProvidesFrom)
	require.Equal(t, "classic", e.CallMode)
	require.Contains(t, string(e.Stamp), `"ref":"good"`)
	e, err = s.Explain(t.Context(), api.Opening{Owner: "core", Ref: "good", Epoch: &one, As: "aft", To: "plexus", Provides: []string{}})
	require.NoError(t, err)
	require.Equal(t, "caller", e.ProvidesFrom)
	require.Empty(t, e.CallMode)
	require.EqualValues(t, 1, s.proxy.world.Table.Totals().Routes, "nothing is reserved")
	require.Zero(t, s.proxy.world.Table.Totals().Pending)
}

// A drain by hand names who and why in the log, and reaches exactly the routes
// that were asked for.
func TestDrainByHand(t *testing.T) {
	s := newTestServer(t)
	s.proxy.world = newTestWorld(t)
	var conn proxy.ConnID
	var matched []table.ScopeID
	all := []table.ScopeID{scopeID("core", "good", 1), scopeID("core", "good", 2), scopeID("core", "x", 1), scopeID("other", "good", 1)}
	s.proxy.evicted = func(c proxy.ConnID, match func(table.ScopeID) bool) int {
		conn, matched = c, nil
		for _, id := range all {
			if match(id) {
				matched = append(matched, id)
			}
		}
		return len(matched)
	}
	two := uint64(2)
	d, err := s.Drain(t.Context(), api.DrainRequest{Owner: "core", Ref: "good", Why: "a\nreason"})
	require.NoError(t, err)
	require.EqualValues(t, 2, d.Routes)
	require.Equal(t, all[:2], matched)
	_, err = s.Drain(t.Context(), api.DrainRequest{Owner: "reserved:core", Ref: "good", ScopeEpoch: &two, Conn: 11, Why: "y"})
	require.NoError(t, err)
	require.Equal(t, all[1:2], matched)
	require.EqualValues(t, 11, conn)
	_, err = s.Drain(t.Context(), api.DrainRequest{Conn: 11, Why: "z"})
	require.NoError(t, err)
	require.Equal(t, all, matched)
	for _, bad := range []api.DrainRequest{{Owner: "core", Ref: "good"}, {Why: "x"}, {Owner: "core", Why: "x"}, {Ref: "good", Why: "x"}, {Owner: "direct", Ref: "r", Why: "x"}} {
		_, err := s.Drain(t.Context(), bad)
		var f *api.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, api.CodeBadRequest, f.Code)
	}
	written(t, s.journal)
	lines := s.logs.FilterMessage("routes were closed by hand").All()
	require.Len(t, lines, 3)
	m := lines[0].ContextMap()
	require.Regexp(t, `^uid=\d+,pid=\d+$`, m["who"])
	require.Equal(t, `"a\nreason"`, m["why"])
	require.Equal(t, int64(2), m["routes"])
}

// What is not as the description says is refused by name.
func TestRequestsOutsideTheDescription(t *testing.T) {
	s := newTestServer(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		code, says         string
	}{
		{"GET", "/v2/status", "", 404, api.CodeNotFound, "no such path"},
		{"GET", "/", "", 404, api.CodeNotFound, "no such path"},
		{"POST", "/v1/status", "", 405, api.CodeMethodNotAllowed, "GET only"},
		{"GET", "/v1/drain", "", 405, api.CodeMethodNotAllowed, "POST only"},
		{"GET", "/v1/scopes?color=red", "", 400, api.CodeBadRequest, "owner, ref"},
		{"GET", "/v1/scopes?ref=a&ref=b", "", 400, api.CodeBadRequest, "more than once"},
		{"GET", "/v1/scopes?owner=direct", "", 400, api.CodeBadRequest, "owns no scopes"},
		{"GET", "/v1/scopes?%zz", "", 400, api.CodeBadRequest, "can't be read"},
		{"GET", "/v1/refusals?limit=0", "", 400, api.CodeBadRequest, "1 to 10000"},
		{"GET", "/v1/events?kind=nothing", "", 400, api.CodeBadRequest, "no kind of event"},
		{"GET", "/v1/explain?owner=core&ref=s&as=direct&to=tool", "", 503, api.CodeNoRouter, "no router"},
		{"POST", "/v1/drain", `{"conn":1,"why":"x","colour":"red"}`, 400, api.CodeBadRequest, "colour"},
		{"POST", "/v1/drain", `[]`, 400, api.CodeBadRequest, "not as the description"},
		{"POST", "/v1/drain", `{"conn":1,"why":"` + strings.Repeat("x", maxRequest) + `"}`, 400, api.CodeBadRequest, "over"},
		{"POST", "/v1/drain", `{"conn":1,"why":"x"}`, 503, api.CodeNoRouter, "no router"},
	} {
		status, body := s.raw(t, c.method, c.path, c.body)
		require.Equal(t, c.status, status, c.path)
		var f api.Failure
		require.NoError(t, json.Unmarshal(body, &f), "%s: %s", c.path, body)
		require.Equal(t, c.code, f.Code, c.path)
		require.Contains(t, f.Message, c.says, c.path)
	}
}

// raw asks without the client's help.
func (s *testServer) raw(t testing.TB, method, path, body string) (int, []byte) {
	t.Helper()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://scopeward", bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	req.URL.Opaque = path
	res, err := tr.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, answer
}

// A process may choose any bytes for its path: they hide neither its refusal nor
// another's.
func TestAPathThatIsNoUTF8(t *testing.T) {
	s := newTestServer(t)
	s.launches.processes = map[proxy.ConnID]launch.Process{1: {PID: 5, Start: 1, Exe: "/tmp/\xff\xfe"}}
	s.journal.Attribute(s.launches)
	s.journal.Record(proxy.Decision{Kind: proxy.Refused, AtMS: someMS, Conn: 1})
	got, err := s.Refusals(t.Context(), api.Filter{})
	require.NoError(t, err)
	require.Equal(t, "/tmp/\ufffd\ufffd", got.Refusals[0].Exe)
}

func TestEventsAreStreamed(t *testing.T) {
	s := newTestServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, err := s.Events(ctx)
	require.NoError(t, err)
	defer all.Close()
	some, err := s.Events(ctx, "drained", "expired")
	require.NoError(t, err)
	defer some.Close()
	for _, d := range decisions() {
		s.journal.Record(d)
	}
	for i, d := range decisions() {
		e, err := all.Next()
		require.NoError(t, err)
		require.Equal(t, d.Kind.String(), e.Kind)
		require.EqualValues(t, i+1, e.Seq)
		require.Equal(t, "reserved:core", e.Owner)
		require.EqualValues(t, 3, *e.ScopeEpoch)
	}
	for _, kind := range []string{"drained", "expired"} {
		e, err := some.Next()
		require.NoError(t, err)
		require.Equal(t, kind, e.Kind)
	}
	require.EqualValues(t, 2, s.journal.hub.readers.Load())
	require.NoError(t, some.Close())
	require.Eventually(t, func() bool { return s.journal.hub.readers.Load() == 1 }, time.Minute, time.Millisecond, "one that leaves is forgotten")
	// The end of the API ends the streams.
	require.NoError(t, s.Server.Close(t.Context()))
	_, err = all.Next()
	require.ErrorIs(t, err, io.EOF)
}

// A reader that falls behind reads what it had, is told, and is cut.
func TestEventsOfASlowReader(t *testing.T) {
	s := newTestServer(t)
	stream, err := s.Events(t.Context())
	require.NoError(t, err)
	defer stream.Close()
	// It is not read: the socket's buffers fill, then its backlog.
	for i := 0; s.journal.hub.lagged.Load() == 0; i++ {
		s.journal.Record(proxy.Decision{Kind: proxy.Drained, AtMS: someMS, Conn: 1, Message: strings.Repeat("m", 1000)})
		require.Less(t, i, 1_000_000, "it is never cut")
	}
	for n := 0; ; n++ {
		_, err := stream.Next()
		if err == nil {
			continue
		}
		require.ErrorIs(t, err, api.ErrLagged)
		require.GreaterOrEqual(t, n, backlog)
		return
	}
}

// A silent stream says that it lives.
func TestEventsHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _ := newTestJournal(t, -1)
		s := &Server{p: Params{Journal: j, Proxy: &fakeProxy{}}}
		ctx, cancel := context.WithCancel(t.Context())
		w := &fakeWriter{header: http.Header{}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.events(w, httpGet(ctx, "/v1/events"))
		}()
		<-time.After(2*heartbeat + time.Second)
		cancel()
		<-done
		require.Equal(t, 2, strings.Count(w.body.String(), ": alive\n\n"))
	})
}

func httpGet(ctx context.Context, path string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// fakeWriter is a response that takes deadlines and flushes.
type fakeWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (w *fakeWriter) Header() http.Header              { return w.header }
func (w *fakeWriter) Write(b []byte) (int, error)      { return w.body.Write(b) }
func (w *fakeWriter) WriteHeader(int)                  {}
func (w *fakeWriter) FlushError() error                { return nil }
func (w *fakeWriter) SetWriteDeadline(time.Time) error { return nil }
func (w *fakeWriter) SetReadDeadline(time.Time) error  { return nil }

func TestClientSaysWhoIsNotThere(t *testing.T) {
	c := api.NewClient(shortDir(t) + "/none")
	defer c.Close()
	_, err := c.Status(t.Context())
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.ErrorContains(t, err, "the socket does not exist; start the sidecar")
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("because")
	cancel(because)
	_, err = c.Status(ctx)
	require.ErrorIs(t, err, because)
}
