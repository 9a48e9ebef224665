package handshake

import (
	"crypto/hmac"
	"crypto/sha256"
)

// The lengths of what is exchanged, in bytes.
const (
	NonceLen    = 32
	ProofLen    = sha256.Size
	DaemonIDLen = 16
	// MinKey is the shortest key that is accepted. Longer ones are used whole.
	MinKey = 32
)

// The domains keep one side's proof from being sent back as the other's.
const (
	domainServer = "subc-server-v1"
	domainClient = "subc-client-v1"
)

// nonces are what both proofs are taken over.
type nonces struct {
	client, server [NonceLen]byte
	daemonID       [DaemonIDLen]byte
}

func (n *nonces) proof(key []byte, domain string) (sum [ProofLen]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(domain))
	mac.Write(n.client[:])
	mac.Write(n.server[:])
	mac.Write(n.daemonID[:])
	mac.Sum(sum[:0])
	return sum
}

// proven reports, in constant time, whether got is the proof for domain.
func (n *nonces) proven(key []byte, domain string, got *[ProofLen]byte) bool {
	want := n.proof(key, domain)
	return hmac.Equal(want[:], got[:])
}
