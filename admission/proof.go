package admission

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"scopeward/table"
)

// The length of a bind proof's secret, and of its only encoding: base64url
// without padding (section 4).
const (
	secretLen = 32
	proofLen  = 43
)

// proofDigest is what an open's proof hashes to.
type proofDigest struct {
	sum   [sha256.Size]byte
	valid bool // false: not base64url of 32 bytes. It matches no hash then
}

// digestProof decodes and hashes a proof, off the lock. Strict refuses trailing
// bits, so a secret has one proof. The decoder skips CR and LF wherever they
// stand: the length is what refuses them, since 43 characters with one of those
// among them decode to fewer than 32 bytes.
func digestProof(proof string) proofDigest {
	if len(proof) != proofLen {
		return proofDigest{}
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(proof)
	if err != nil || len(secret) != secretLen {
		return proofDigest{}
	}
	return proofDigest{sum: sha256.Sum256(secret), valid: true}
}

// matches compares digests in constant time.
func (d *proofDigest) matches(hash *table.ProofHash) bool {
	return subtle.ConstantTimeCompare(d.sum[:], hash[:]) == 1 && d.valid
}
