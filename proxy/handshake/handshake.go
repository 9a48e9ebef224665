package handshake

import (
	"crypto/rand"
	"crypto/subtle"
	"io"
	"time"
)

const (
	// Timeout bounds a whole handshake, all messages together. The caller sets it
	// as the connection's deadline.
	Timeout = 2 * time.Second
	// MaxUnauthenticated is how many connections may be in a handshake at once.
	MaxUnauthenticated = 256
)

// The roles that are known. A role carries no authority.
const (
	RoleClient   = "client"
	RoleWatchdog = "watchdog" // the router's own probe
)

// ClientHello is what a client claims. It holds no nonce.
type ClientHello struct {
	Role string // a claim, bounded by MaxMessage; quote it before it is logged
}

// ServerHello is what a server says of itself.
type ServerHello struct {
	DaemonVer string
}

// Params are what a server proves itself with. Key is a secret.
type Params struct {
	Key       []byte // at least MinKey bytes
	DaemonID  []byte // DaemonIDLen bytes
	DaemonVer string
}

// Client authenticates rw as a client that expects the daemon daemonID, which
// is [DaemonIDLen] bytes. It refuses a wrong proof with [ErrServerProof] and
// another daemon with [ErrDaemonID] before its own proof leaves. Every error is
// a [StageError] or [ErrKey].
//
// When Client returns nil the server may still refuse: it says so by closing
// the connection.
func Client(rw io.ReadWriter, key, daemonID []byte, role string) (ServerHello, error) {
	if len(key) < MinKey {
		return ServerHello{}, ErrKey
	}
	var n nonces
	rand.Read(n.client[:])
	if err := sendClientHello(rw, &n, role); err != nil {
		return ServerHello{}, &StageError{StageClientHello, err}
	}
	hello, err := receiveServerProof(rw, &n, key)
	if err == nil && subtle.ConstantTimeCompare(n.daemonID[:], daemonID) != 1 {
		err = ErrDaemonID
	}
	if err != nil {
		return ServerHello{}, &StageError{StageServerProof, err}
	}
	proof := n.proof(key, domainClient)
	w := newWriter()
	w.bytes(fieldClientAuth, proof[:])
	if err := w.send(rw); err != nil {
		return ServerHello{}, &StageError{StageClientAuth, err}
	}
	return hello, nil
}

// Server authenticates the client at the other end of rw. After nil the next
// byte of rw is the first of a frame. Every error is a [StageError] or
// [ErrKey], and the caller closes rw without a word.
func Server(rw io.ReadWriter, p Params) (ClientHello, error) {
	if len(p.Key) < MinKey {
		return ClientHello{}, ErrKey
	}
	g := NewGreeting(p)
	for !g.Done() {
		b := make([]byte, g.want())
		if _, err := io.ReadFull(rw, b); err != nil {
			if err == io.EOF && len(g.in) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return ClientHello{}, &StageError{g.stage, err}
		}
		reply, _, err := g.Feed(b)
		if err != nil {
			return ClientHello{}, err
		}
		if len(reply) > 0 {
			if _, err := rw.Write(reply); err != nil {
				return ClientHello{}, &StageError{StageServerProof, err}
			}
		}
	}
	return g.Hello(), nil
}

func sendClientHello(to io.Writer, n *nonces, role string) error {
	w := newWriter()
	w.bytes(fieldClientNonce, n.client[:])
	if err := w.text(fieldRole, role); err != nil {
		return err
	}
	return w.send(to)
}

func readClientHello(body []byte, n *nonces) (ClientHello, error) {
	m, err := parse(body)
	if err != nil {
		return ClientHello{}, err
	}
	if err := m.bytes(fieldClientNonce, n.client[:]); err != nil {
		return ClientHello{}, err
	}
	role, err := m.text(fieldRole)
	return ClientHello{Role: role}, err
}

func serverProof(n *nonces, p Params) ([]byte, error) {
	proof := n.proof(p.Key, domainServer)
	w := newWriter()
	w.bytes(fieldDaemonID, n.daemonID[:])
	w.bytes(fieldServerNonce, n.server[:])
	if err := w.text(fieldDaemonVer, p.DaemonVer); err != nil {
		return nil, err
	}
	w.bytes(fieldServerProof, proof[:])
	return w.finish()
}

// receiveServerProof judges the proof over the daemon_id that came: a daemon
// with the key and another id is told apart from one without the key.
func receiveServerProof(from io.Reader, n *nonces, key []byte) (ServerHello, error) {
	m, err := receive(from)
	if err != nil {
		return ServerHello{}, err
	}
	if err := m.bytes(fieldDaemonID, n.daemonID[:]); err != nil {
		return ServerHello{}, err
	}
	if err := m.bytes(fieldServerNonce, n.server[:]); err != nil {
		return ServerHello{}, err
	}
	ver, err := m.text(fieldDaemonVer)
	if err != nil {
		return ServerHello{}, err
	}
	var proof [ProofLen]byte
	if err := m.bytes(fieldServerProof, proof[:]); err != nil {
		return ServerHello{}, err
	}
	if !n.proven(key, domainServer, &proof) {
		return ServerHello{}, ErrServerProof
	}
	return ServerHello{DaemonVer: ver}, nil
}

func judgeClientAuth(body []byte, n *nonces, key []byte) error {
	m, err := parse(body)
	if err != nil {
		return err
	}
	var proof [ProofLen]byte
	if err := m.bytes(fieldClientAuth, proof[:]); err != nil {
		return err
	}
	if !n.proven(key, domainClient, &proof) {
		return ErrClientProof
	}
	return nil
}
