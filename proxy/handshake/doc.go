// Package handshake is the authentication that comes before the first frame,
// both sides of it.
//
// Three messages are exchanged, each a little-endian u32 length and that many
// bytes of JSON: the client's nonce and role, the server's nonce and proof, the
// client's proof. Both proofs are an HMAC-SHA256 of both nonces under the key
// of the connection file. There is no success message: frames simply begin.
//
// The flow: [Client] sends its nonce, checks the server's proof and daemon_id,
// and only then proves that it holds the key itself. [Server] answers a nonce
// with its proof and compares the client's in constant time.
//
// The package reads its messages and never one byte more, since frames may
// stand right behind the last. It owns no socket and no clock: the caller sets a
// deadline of [Timeout] on the connection before and clears it after, and holds
// at most [MaxUnauthenticated] connections that have not passed.
//
// What a handshake proves is possession of the key, and nothing else: a role is
// a claim.
package handshake
