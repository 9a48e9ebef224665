package router

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// newTestLink is a stub router and a link to it.
func newTestLink(t *testing.T, cfg routertest.Config) (*routertest.Router, *Link) {
	t.Helper()
	r, err := routertest.NewRouter(cfg)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	l, err := Dial(t.Context(), r.File())
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return r, l
}

// pair is a link and the bare other end of its connection. It is closed by the
// test: a synctest bubble must be empty at its end.
func pair() (*Link, net.Conn) {
	ours, theirs := net.Pipe()
	return newLink(ours, connfile.File{}), theirs
}

func TestRequestsShareOneLinkByCorr(t *testing.T) {
	l, router := pair()
	defer l.Close()
	go func() {
		// Both questions are read before either is answered, and answered backwards.
		first, err1 := wire.ReadFrame(router)
		second, err2 := wire.ReadFrame(router)
		if err1 != nil || err2 != nil {
			return
		}
		for _, f := range []wire.Frame{second, first} {
			router.Write(wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: f.Corr}, f.Body))
		}
	}()
	type answer struct {
		Op string `json:"op"`
	}
	got := make(chan answer, 2)
	for _, name := range []string{"a", "b"} {
		go func() {
			var a answer
			if l.Do(t.Context(), name, op(name), &a) == nil && a.Op == name {
				got <- a
			}
		}()
	}
	require.ElementsMatch(t, []answer{{"a"}, {"b"}}, []answer{<-got, <-got})
}

func TestARouterThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, router := pair()
		go func() {
			for {
				if _, err := wire.ReadFrame(router); err != nil {
					return
				}
			}
		}()
		began := time.Now()
		_, err := l.SpawnSnapshot(t.Context())
		require.ErrorIs(t, err, ErrNoAnswer)
		require.Equal(t, AnswerTimeout, time.Since(began))
		require.NoError(t, l.Err(), "the link is still good")
		require.Empty(t, l.waiting, "nobody waits for the answer any more")
		l.Close()
	})
}

func TestTheEndOfTheLinkEndsEveryQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, router := pair()
		feed := make(chan error, 1)
		go func() {
			wire.ReadFrame(router)
			wire.ReadFrame(router)
			router.Close()
		}()
		f, err := l.SpawnSubscribe(Cursor{})
		require.NoError(t, err)
		go func() {
			_, err := f.Next(context.Background())
			feed <- err
		}()
		_, err = l.SpawnSnapshot(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, <-feed, ErrClosed)
		<-l.Done()
		_, err = l.SpawnSnapshot(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		_, err = l.Modules(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		l.Close()
	})
}

func TestAPingIsAnswered(t *testing.T) {
	l, router := pair()
	defer l.Close()
	_, err := router.Write(wire.Header{Type: wire.Ping, Corr: 7}.Append(nil))
	require.NoError(t, err)
	f, err := wire.ReadFrame(router)
	require.NoError(t, err)
	require.Equal(t, wire.Header{Type: wire.Pong, Corr: 7}, f.Header)
}

func TestAnAnswerThatIsNotOneIsAnError(t *testing.T) {
	for name, frame := range map[string][]byte{
		"another type":        wire.AppendFrame(nil, wire.Header{Type: wire.HelloAck, Corr: 1}, []byte(`{}`)),
		"no JSON":             wire.AppendFrame(nil, wire.Header{Type: wire.Response, Corr: 1}, []byte(`{`)),
		"an error of no code": wire.AppendFrame(nil, wire.Header{Type: wire.Error, Corr: 1}, []byte(`{"message":"x"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			l, router := pair()
			defer l.Close()
			go func() {
				wire.ReadFrame(router)
				router.Write(frame)
			}()
			_, err := l.SpawnSnapshot(t.Context())
			require.ErrorIs(t, err, ErrReply)
			require.Empty(t, Refused(err))
		})
	}
}

func TestDialRefusesAnotherDaemon(t *testing.T) {
	r, _ := newTestLink(t, routertest.Config{})
	f := r.File()
	f.Key = make(connfile.Secret, len(f.Key))
	_, err := Dial(t.Context(), f)
	require.Error(t, err)
}

// The router answers one connection's requests in order: what takes it long must
// not hold up a probe.
func TestSlowQuestionsGoByAConnectionOfTheirOwn(t *testing.T) {
	r, l := newTestLink(t, routertest.Config{Modules: []routertest.ModuleConfig{{ID: "a"}}})
	_, err := l.Modules(t.Context())
	require.NoError(t, err)
	slow := l.slow
	require.NotNil(t, slow)
	require.NotEqual(t, slow.conn.LocalAddr(), l.conn.LocalAddr())
	_, err = l.Modules(t.Context())
	require.NoError(t, err)
	require.Same(t, slow, l.slow, "one, kept")

	slow.Close()
	_, err = l.Modules(t.Context())
	require.NoError(t, err, "opened again when it broke")
	require.NoError(t, l.Err())
	r.Close()
	<-l.Done()
	_, err = l.Modules(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}
