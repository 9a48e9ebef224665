package e2e

import (
	"bufio"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// An actor is this test binary, launched by the router as a module. It says
// which launch it is and then opens connections when it is asked to, handing
// their bytes through: what the test writes comes from the launched process.

// envStage names the Unix socket on which a test waits for its actors.
const envStage = "SCOPEWARD_E2E_STAGE"

// entrance is the first line that an actor writes on a connection to the stage.
type entrance struct {
	ModuleID string `json:"module_id,omitzero"` // of a launch
	Nonce    string `json:"nonce,omitzero"`
	PID      int    `json:"pid,omitzero"`
	Role     string `json:"role,omitzero"`
	Token    string `json:"token,omitzero"` // of a handed connection: what was asked
}

// act is an actor's whole life. It ends when the test's end of its line does.
func act(stage string) {
	line, err := enter(stage, entrance{
		ModuleID: os.Getenv("SUBC_MODULE_ID"), Nonce: os.Getenv("SUBC_LAUNCH_NONCE"),
		PID: os.Getpid(), Role: os.Getenv("SUBC_SPAWN_ROLE"),
	})
	if err != nil {
		return
	}
	file := os.Args[slices.Index(os.Args, "--subc")+1]
	for tokens := bufio.NewScanner(line); tokens.Scan(); {
		router, err := dialFile(file)
		if err != nil {
			return
		}
		test, err := enter(stage, entrance{Token: tokens.Text()})
		if err != nil {
			return
		}
		go hand(router, test)
		go hand(test, router)
	}
}

func enter(stage string, e entrance) (net.Conn, error) {
	conn, err := net.Dial("unix", stage)
	if err != nil {
		return nil, err
	}
	_, err = conn.Write(append(wire.MustMarshal(e), '\n'))
	return conn, err
}

func hand(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

// stage is where a world's actors enter.
type stage struct {
	w        *world
	listener net.Listener
	launches chan *launch
	handed   chan *bufferedConn
	done     chan struct{}
}

// launch is one launched actor.
type launch struct {
	entrance
	stage *stage
	line  net.Conn
}

// bufferedConn is a connection whose first line was read.
type bufferedConn struct {
	net.Conn
	r     *bufio.Reader
	token string
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// actor is the module entry of an actor.
func (w *world) actor() module {
	program, err := os.Executable()
	require.NoError(w.t, err)
	return module{program: program, env: map[string]string{envStage: w.path("stage.sock")}, overlap: true}
}

// openStage starts waiting for actors. It comes before the router.
func (w *world) openStage() *stage {
	w.t.Helper()
	l, err := net.Listen("unix", w.path("stage.sock"))
	require.NoError(w.t, err)
	s := &stage{w: w, listener: l, launches: make(chan *launch, 64), handed: make(chan *bufferedConn, 64), done: make(chan struct{})}
	go s.accept()
	w.t.Cleanup(func() {
		l.Close()
		<-s.done
		for len(s.launches) > 0 {
			(<-s.launches).line.Close()
		}
	})
	return s
}

func (s *stage) accept() {
	defer close(s.done)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		conn.SetReadDeadline(time.Now().Add(patience))
		r := bufio.NewReader(conn)
		first, err := r.ReadBytes('\n')
		var e entrance
		if err != nil || json.Unmarshal(first, &e) != nil {
			conn.Close()
			continue
		}
		conn.SetReadDeadline(time.Time{})
		if e.Token != "" {
			s.handed <- &bufferedConn{Conn: conn, r: r, token: e.Token}
			continue
		}
		s.launches <- &launch{entrance: e, stage: s, line: conn}
	}
}

// wait returns the next launch of the module id. Others that come are put back.
func (s *stage) wait(id string) *launch {
	s.w.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case l := <-s.launches:
			if l.ModuleID == id {
				s.w.t.Cleanup(func() { l.line.Close() })
				return l
			}
			s.launches <- l
		case <-limit:
			require.Failf(s.w.t, "no launch", "of %s", id)
		}
	}
}

// connect has the launched process connect to the sidecar.
func (l *launch) connect(t *testing.T, answer func(*link, wire.Frame) bool) *link {
	t.Helper()
	_, err := l.line.Write([]byte(l.ModuleID + "\n"))
	require.NoError(t, err)
	select {
	case conn := <-l.stage.handed:
		require.Equal(t, l.ModuleID, conn.token)
		return newLinkOn(t, conn, answer)
	case <-time.After(patience):
		require.Fail(t, "the launch opened no connection")
		return nil
	}
}

// hello is the launch's own Hello.
func (l *launch) hello(ready bool) []byte {
	body := object{}
	if err := json.Unmarshal(helloBody(l.ModuleID), &body); err != nil {
		panic(err)
	}
	body["launch_nonce"] = l.Nonce
	body["manifest"].(object)["ready"] = ready
	return wire.MustMarshal(body)
}

// register connects and says Hello with the launch's nonce. It acks every bind
// and echoes every call.
func (l *launch) register(t *testing.T, ready bool) *link {
	t.Helper()
	m := l.connect(t, serve)
	f := m.await(m.ask(wire.Header{Type: wire.Hello}, l.hello(ready)))
	require.Equal(t, wire.HelloAck, f.Type, "%s", f.Body)
	return m
}

// serve answers as a plain provider does.
func serve(l *link, f wire.Frame) bool {
	if f.Type != wire.Request {
		return false
	}
	h := wire.Header{Type: wire.Response, Channel: f.Channel, Epoch: f.Epoch, Corr: f.Corr}
	var body struct {
		Op string `json:"op"`
	}
	switch {
	case f.Channel != 0:
		l.send(h, f.Body)
	case json.Unmarshal(f.Body, &body) == nil && body.Op == wire.OpHealthCheck:
		l.send(h, wire.MustMarshal(object{"op": body.Op, "status": "ok"}))
	default:
		l.send(h, wire.MustMarshal(object{"op": body.Op}))
	}
	return true
}

// sync sends a scope.sync and returns its refusal's code, "" when it was
// accepted and "closed" when the connection ended first.
func (l *link) sync(generation uint64, records ...object) string {
	l.t.Helper()
	body := object{"op": wire.OpScopeSync, "generation": generation, "scopes": append([]object{}, records...)}
	f, ok := l.answer(l.ask(wire.Header{}, wire.MustMarshal(body)))
	switch {
	case !ok:
		return "closed"
	case f.Type == wire.Error:
		return decode[refusal](l.t, f).Code
	}
	require.Equal(l.t, wire.Response, f.Type)
	return ""
}

// as adds the identity of a launch to an open.
func as(body object, id, nonce string) object {
	body["consumer_identity"] = object{"module_id": id, "launch_nonce": nonce}
	return body
}
