package sidecar

import (
	"crypto/rand"
	"encoding/hex"

	"scopeward/proxy/connfile"
	"scopeward/proxy/handshake"
)

// identity is what we prove ourselves with: new at every start, as a router's.
type identity struct {
	key      connfile.Secret
	daemonID []byte
}

func newIdentity() identity {
	id := identity{key: make([]byte, handshake.MinKey), daemonID: make([]byte, handshake.DaemonIDLen)}
	rand.Read(id.key)
	rand.Read(id.daemonID)
	return id
}

// newIncarnation names one world: 32 hex digits. It is never the router's own:
// our restart loses scopes and the router's incarnation would not say so.
func newIncarnation() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
