package handshake

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testParams() Params {
	p := Params{DaemonVer: "0.24.0"}
	for i := range MinKey {
		p.Key = append(p.Key, byte(i))
	}
	for i := range DaemonIDLen {
		p.DaemonID = append(p.DaemonID, byte(i))
	}
	return p
}

// pair runs server at one end of a connection and gives the other end.
func pair(t *testing.T, p Params, serve func(c net.Conn, hello ClientHello, err error)) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	deadline := time.Now().Add(time.Minute)
	require.NoError(t, client.SetDeadline(deadline))
	require.NoError(t, server.SetDeadline(deadline))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		hello, err := Server(server, p)
		serve(server, hello, err)
	}()
	t.Cleanup(func() { client.Close(); <-done })
	return client
}

func TestBothSidesAgree(t *testing.T) {
	p := testParams()
	got := make(chan ClientHello, 1)
	c := pair(t, p, func(c net.Conn, hello ClientHello, err error) {
		if err == nil {
			got <- hello
			io.WriteString(c, "a frame")
		}
	})
	hello, err := Client(c, p.Key, p.DaemonID, `wätch"dog`)
	require.NoError(t, err)
	require.Equal(t, "0.24.0", hello.DaemonVer)
	rest, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "a frame", string(rest))
	require.Equal(t, `wätch"dog`, (<-got).Role)
}

func TestServerReadsNotAByteBeyondTheProof(t *testing.T) {
	p := testParams()
	got := make(chan string, 1)
	c := pair(t, p, func(c net.Conn, _ ClientHello, err error) {
		b, _ := io.ReadAll(c)
		got <- fmt.Sprint(string(b), err)
	})
	// The last write carries the proof and a frame in one piece.
	_, err := Client(&trailing{c, 2, "pipelined"}, p.Key, p.DaemonID, RoleClient)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, "pipelined<nil>", <-got)
}

// trailing sends tail in one piece with its nth write.
type trailing struct {
	net.Conn
	n    int
	tail string
}

func (c *trailing) Write(b []byte) (int, error) {
	if c.n--; c.n == 0 {
		n, err := c.Conn.Write(append(bytes.Clone(b), c.tail...))
		return min(n, len(b)), err
	}
	return c.Conn.Write(b)
}

func TestClientRefusesBeforeItProves(t *testing.T) {
	p := testParams()
	otherKey, otherID := bytes.Repeat([]byte{9}, 32), bytes.Repeat([]byte{9}, 16)
	for _, c := range []struct {
		name    string
		key, id []byte
		want    error
	}{
		{"another key", otherKey, p.DaemonID, ErrServerProof},
		{"another daemon", p.Key, otherID, ErrDaemonID},
		{"both", otherKey, otherID, ErrServerProof},
		{"a daemon_id of another length", p.Key, p.DaemonID[:15], ErrDaemonID},
	} {
		t.Run(c.name, func(t *testing.T) {
			stage := make(chan error, 1)
			conn := pair(t, p, func(_ net.Conn, _ ClientHello, err error) { stage <- err })
			_, err := Client(conn, c.key, c.id, RoleClient)
			require.ErrorIs(t, err, c.want)
			require.NoError(t, conn.Close())
			var at *StageError
			require.ErrorAs(t, <-stage, &at)
			require.Equal(t, StageClientAuth, at.Stage)
			require.ErrorIs(t, at, io.EOF, "not a byte of the client's proof was sent")
		})
	}
}

func TestServerRefusesAClientWithoutTheKey(t *testing.T) {
	p := testParams()
	got := make(chan error, 1)
	c := pair(t, p, func(_ net.Conn, _ ClientHello, err error) { got <- err })
	n := nonces{}
	require.NoError(t, sendClientHello(c, &n, RoleClient))
	_, err := receiveServerProof(c, &n, p.Key)
	require.NoError(t, err)
	// The server's own proof, reflected, is no client's.
	proof := n.proof(p.Key, domainServer)
	w := newWriter()
	w.bytes(fieldClientAuth, proof[:])
	require.NoError(t, w.send(c))
	require.ErrorIs(t, <-got, ErrClientProof)
}

func TestShortKeyIsRefusedOnBothSides(t *testing.T) {
	p := testParams()
	p.Key = p.Key[:MinKey-1]
	var rw bytes.Buffer
	_, err := Client(&rw, p.Key, p.DaemonID, RoleClient)
	require.ErrorIs(t, err, ErrKey)
	_, err = Server(&rw, p)
	require.ErrorIs(t, err, ErrKey)
	_, _, err = NewGreeting(p).Feed([]byte{1})
	require.ErrorIs(t, err, ErrKey)
	require.Zero(t, rw.Len())
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestGoldenProofs(t *testing.T) {
	data, err := os.ReadFile("testdata/wire_vectors.json")
	require.NoError(t, err)
	var file struct {
		Proofs []struct {
			Name     string `json:"name"`
			Key      string `json:"key_hex"`
			Domain   string `json:"domain"`
			Client   string `json:"client_nonce_hex"`
			Server   string `json:"server_nonce_hex"`
			DaemonID string `json:"daemon_id_hex"`
			Want     string `json:"expected_proof_hex"`
		} `json:"proof_vectors"`
	}
	require.NoError(t, json.Unmarshal(data, &file))
	require.Len(t, file.Proofs, 2)
	for _, v := range file.Proofs {
		t.Run(v.Name, func(t *testing.T) {
			var n nonces
			copy(n.client[:], mustHex(t, v.Client))
			copy(n.server[:], mustHex(t, v.Server))
			copy(n.daemonID[:], mustHex(t, v.DaemonID))
			proof := n.proof(mustHex(t, v.Key), v.Domain)
			require.Equal(t, v.Want, hex.EncodeToString(proof[:]))
			require.True(t, n.proven(mustHex(t, v.Key), v.Domain, &proof))
			proof[31] ^= 1
			require.False(t, n.proven(mustHex(t, v.Key), v.Domain, &proof))
			require.Contains(t, []string{domainServer, domainClient}, v.Domain)
		})
	}
}

// framed is a message with its length before it.
func framed(body string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func numbers(n int, v string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(v+",", n), ",") + "]"
}

func TestClientHelloIsReadAsTheRouterReadsIt(t *testing.T) {
	nonce := numbers(32, "7")
	for name, body := range map[string]string{
		"plain":            `{"client_nonce":` + nonce + `,"role":"client"}`,
		"reordered":        `{"role":"client","client_nonce":` + nonce + `}`,
		"spaced":           " {\n\"role\" : \"client\" , \"client_nonce\" : " + strings.ReplaceAll(nonce, ",", " ,\t") + " } ",
		"unknown members":  `{"x":{"client_nonce":[]},"client_nonce":` + nonce + `,"role":"client","x":1}`,
		"escaped name":     `{"client\u005fnonce":` + nonce + `,"role":"cl\u0069ent"}`,
		"largest":          `{"client_nonce":` + nonce + `,"role":"client"}` + strings.Repeat(" ", MaxMessage-103),
		"numbers 0 to 255": `{"client_nonce":[0,255,` + numbers(30, "7")[1:] + `,"role":"client"}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGreeting(t)
			reply, _, err := g.Feed(append(framed(body), 'X'))
			require.NoError(t, err)
			require.NotEmpty(t, reply)
			require.Equal(t, "client", g.Hello().Role)
			require.EqualValues(t, 7, g.n.client[31])
			require.Equal(t, "X", string(g.in), "what follows is the next message's")
		})
	}
	for name, body := range map[string]string{
		"empty":           ``,
		"no object":       `[` + nonce + `,"client"]`,
		"no nonce":        `{"role":"client"}`,
		"no role":         `{"client_nonce":` + nonce + `}`,
		"short nonce":     `{"client_nonce":` + numbers(31, "7") + `,"role":"client"}`,
		"long nonce":      `{"client_nonce":` + numbers(33, "7") + `,"role":"client"}`,
		"empty nonce":     `{"client_nonce":[],"role":"client"}`,
		"over 255":        `{"client_nonce":` + numbers(32, "256") + `,"role":"client"}`,
		"negative":        `{"client_nonce":` + numbers(32, "-1") + `,"role":"client"}`,
		"fraction":        `{"client_nonce":` + numbers(32, "1.0") + `,"role":"client"}`,
		"leading zero":    `{"client_nonce":` + numbers(32, "01") + `,"role":"client"}`,
		"null":            `{"client_nonce":null,"role":"client"}`,
		"string":          `{"client_nonce":"` + strings.Repeat("a", 32) + `","role":"client"}`,
		"nested":          `{"client_nonce":[` + nonce + `],"role":"client"}`,
		"trailing comma":  `{"client_nonce":` + nonce[:len(nonce)-1] + `,],"role":"client"}`,
		"role null":       `{"client_nonce":` + nonce + `,"role":null}`,
		"role number":     `{"client_nonce":` + nonce + `,"role":1}`,
		"role repeated":   `{"client_nonce":` + nonce + `,"role":"a","role":"b"}`,
		"nonce repeated":  `{"client_nonce":` + nonce + `,"client_nonce":` + nonce + `,"role":"a"}`,
		"nonce by escape": `{"client_nonce":` + nonce + `,"client\u005fnonce":` + nonce + `,"role":"a"}`,
		"role not UTF-8":  `{"client_nonce":` + nonce + `,"role":"` + "\xff" + `"}`,
	} {
		t.Run("not "+name, func(t *testing.T) {
			_, _, err := newGreeting(t).Feed(framed(body))
			var malformed *MessageError
			require.ErrorAs(t, err, &malformed)
			require.NotContains(t, err.Error(), "7,7")
		})
	}
}

func TestOversizeIsRefusedUnread(t *testing.T) {
	var n nonces
	r := bytes.NewReader(append(binary.LittleEndian.AppendUint32(nil, MaxMessage+1), make([]byte, 9000)...))
	_, err := Server(script{r, io.Discard}, testParams())
	require.ErrorIs(t, err, ErrSize)
	require.Equal(t, 9000, r.Len())

	var sent bytes.Buffer
	require.ErrorIs(t, sendClientHello(&sent, &n, strings.Repeat("r", MaxMessage)), ErrSize)
	_, err = serverProof(&n, Params{DaemonVer: strings.Repeat("v", MaxMessage)})
	require.ErrorIs(t, err, ErrSize)
	require.Zero(t, sent.Len())
}

// script is a peer that says in and takes what it is told.
type script struct {
	io.Reader
	io.Writer
}

func TestHostileTransports(t *testing.T) {
	p := testParams()
	var n nonces
	var whole bytes.Buffer
	require.NoError(t, sendClientHello(&whole, &n, RoleClient))
	proof := n.proof(p.Key, domainClient)
	w := newWriter()
	w.bytes(fieldClientAuth, proof[:])
	require.NoError(t, w.send(&whole))
	hello := binary.LittleEndian.Uint32(whole.Bytes()) + prefixLen

	t.Run("one byte at a time", func(t *testing.T) {
		got := make(chan error, 1)
		c := pair(t, p, func(_ net.Conn, _ ClientHello, err error) { got <- err })
		_, err := Client(script{iotest.OneByteReader(c), oneByteWriter{c}}, p.Key, p.DaemonID, RoleClient)
		require.NoError(t, err)
		require.NoError(t, <-got)
	})
	t.Run("server: cut at every offset", func(t *testing.T) {
		for cut := range whole.Len() {
			_, err := Server(script{bytes.NewReader(whole.Bytes()[:cut]), io.Discard}, p)
			var at *StageError
			require.ErrorAs(t, err, &at)
			want := io.ErrUnexpectedEOF
			if cut == 0 || cut == int(hello) {
				want = io.EOF
			}
			require.ErrorIs(t, err, want, "cut at %d", cut)
			require.Equal(t, cut < int(hello), at.Stage == StageClientHello, "cut at %d", cut)
		}
	})
	t.Run("client: cut at every offset", func(t *testing.T) {
		answer, err := serverProof(&n, p)
		require.NoError(t, err)
		for cut := range answer {
			var sent bytes.Buffer
			_, err := Client(script{bytes.NewReader(answer[:cut]), &sent}, p.Key, p.DaemonID, RoleClient)
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), err)
			require.EqualValues(t, binary.LittleEndian.Uint32(sent.Bytes())+prefixLen, sent.Len(), "only the hello was sent")
		}
		_, err = Client(script{bytes.NewBuffer(answer), io.Discard}, p.Key, p.DaemonID, RoleClient)
		require.ErrorIs(t, err, ErrServerProof, "an old answer proves nothing for a new nonce")
	})
	t.Run("silence ends with the caller's deadline", func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		require.NoError(t, a.SetDeadline(time.Now().Add(10*time.Millisecond)))
		_, err := Server(a, p)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
	t.Run("a writer that fails", func(t *testing.T) {
		_, err := Server(script{bytes.NewReader(whole.Bytes()), failing{}}, p)
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

type oneByteWriter struct{ io.Writer }

func (w oneByteWriter) Write(b []byte) (int, error) {
	for i := range b {
		if n, err := w.Writer.Write(b[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(b), nil
}

func FuzzServer(f *testing.F) {
	f.Add(framed(`{"client_nonce":` + numbers(32, "7") + `,"role":"client"}`))
	f.Add(append(framed(`{"client_nonce":`+numbers(32, "7")+`,"role":"client"}`), framed(`{"client_auth":`+numbers(32, "0")+`}`)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		_, err := Server(script{r, io.Discard}, testParams())
		require.Error(t, err, "nobody can prove the key without the server's nonce")
		requireStrict(t, in)
	})
}

func FuzzClient(f *testing.F) {
	f.Add(framed(`{"daemon_id":` + numbers(16, "1") + `,"server_nonce":` + numbers(32, "7") + `,"daemon_ver":"v","server_proof":` + numbers(32, "0") + `}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p := testParams()
		_, err := Client(script{bytes.NewReader(in), io.Discard}, p.Key, p.DaemonID, RoleClient)
		require.Error(t, err)
	})
}

// requireStrict compares the hello's reading with a strict decoder's: what that
// takes we take, with the same bytes.
func requireStrict(t *testing.T, in []byte) {
	if len(in) < prefixLen || uint64(binary.LittleEndian.Uint32(in)) != uint64(len(in)-prefixLen) || len(in) > prefixLen+MaxMessage {
		return
	}
	var strict struct {
		Nonce []uint16 `json:"client_nonce"`
		Role  *string  `json:"role"`
	}
	if json.Unmarshal(in[prefixLen:], &strict) != nil || strict.Role == nil || len(strict.Nonce) != NonceLen {
		return
	}
	for _, b := range strict.Nonce {
		if b > 255 {
			return
		}
	}
	g := NewGreeting(testParams())
	_, _, err := g.Feed(in)
	require.NoError(t, err, "%q", in)
	require.Equal(t, *strict.Role, g.Hello().Role)
	for i, b := range strict.Nonce {
		require.EqualValues(t, b, g.n.client[i])
	}
}

func BenchmarkBothSides(b *testing.B) {
	p := testParams()
	client, server := net.Pipe()
	defer client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := Server(server, p); err != nil {
				return
			}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Client(client, p.Key, p.DaemonID, RoleClient); err != nil {
			b.Fatal(err)
		}
	}
	client.Close()
	<-done
}
