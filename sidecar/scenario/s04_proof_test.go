package scenario

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// secret makes a scope's 32 secret bytes, as a proof and as its hash.
func secret(fill byte) (presented doc, hash string) {
	b := bytes.Repeat([]byte{fill}, 32)
	sum := sha256.Sum256(b)
	return doc{"bind_proof": base64.RawURLEncoding.EncodeToString(b)}, hex.EncodeToString(sum[:])
}

// proof_malformed_is_mismatch
func TestS4_AMalformedProofIsAMismatch(t *testing.T) {
	s := play(t)
	c := s.client()
	good, hash := secret(0xfb) // its base64url holds what base64 spells otherwise
	s.module("owner").sync(1, open1("s", 1, proof(hash)))
	s.module("tool")
	p := good["bind_proof"].(string)
	raw := bytes.Repeat([]byte{0xfb}, 32)
	for _, bad := range []string{"", p + "=", base64.RawStdEncoding.EncodeToString(raw), hex.EncodeToString(raw), hash, p[:42], p + "A", p[:42] + string(p[42]+1), " " + p} {
		c.refused("scope_bind_proof_mismatch", "tool", scope("owner", "s", 1, doc{"bind_proof": bad}))
	}
	c.refused("scope_bind_proof_required", "tool", scope("owner", "s", 1))
	c.opens("tool", scope("owner", "s", 1, good))
}

// proof_reserved_openers_are_exempt
func TestS4_ReservedOpenersNeedNoProofAndAnyTheySendIsIgnored(t *testing.T) {
	s := play(t)
	c := s.client()
	_, hash := secret(1)
	s.module("owner").sync(1, rec("s", 1, proof(hash), carriers("mate", "direct")))
	s.module("mate")
	s.module("tool")
	garbage := scope("owner", "s", 1, doc{"bind_proof": "garbage"})
	c.opens("tool", scope("owner", "s", 1), s.as("owner"))
	c.opens("tool", scope("owner", "s", 1), s.as("mate"))
	c.opens("tool", garbage, s.as("mate"))
	c.refused("scope_bind_proof_mismatch", "tool", garbage)
}

// proof_ignored_without_hash
func TestS4_ARecordWithoutAHashIgnoresEvenAMalformedProof(t *testing.T) {
	s := play(t)
	c := s.client()
	s.module("owner").sync(1, open1("s", 1))
	s.module("tool")
	for _, p := range []string{"garbage!", ""} {
		c.opens("tool", scope("owner", "s", 1, doc{"bind_proof": p}))
	}
}

// proof_after_carrier_and_epoch
func TestS4_OwnerCarrierAndEpochAreJudgedBeforeTheProof(t *testing.T) {
	s := play(t)
	c := s.client()
	good, hash := secret(1)
	s.module("owner").sync(1, rec("s", 5, proof(hash)), open1("d", 5, proof(hash)))
	s.module("tool")
	c.refused("scope_not_carrier", "tool", scope("owner", "s", 5, good))
	c.refused("scope_ended", "tool", scope("owner", "d", 4))
	c.refused("scope_epoch_required", "tool", scope("owner", "d", 5, doc{"scope_epoch": nil}))
	c.refused("scope_not_live", "tool", scope("owner", "x", 5))
	c.refused("scope_bind_proof_required", "tool", scope("owner", "d", 5))
}

// proof_before_target_gates
func TestS4_TheProofIsJudgedBeforeTheTargetsGates(t *testing.T) {
	s := play(t)
	c := s.client()
	good, hash := secret(1)
	s.module("owner").sync(1, open1("f", 1, proof(hash), flow("f")), open1("r", 1, proof(hash), agent("a"), run("r")))
	s.module("tool")
	c.refused("scope_bind_proof_required", "tool", scope("owner", "f", 1))
	require.Contains(t, c.refused("target_flow_unsupported", "tool", scope("owner", "f", 1, good)), "tool")
	require.Contains(t, c.refused("target_agent_run_unsupported", "tool", scope("owner", "r", 1, good)), "tool")
}

// proof_hash_change_while_bind_held
func TestS4_AHashThatChangesUnderAHeldBindIsScopeChanged(t *testing.T) {
	s := play(t)
	good, hash := secret(1)
	_, next := secret(2)
	h := hold(s, []doc{open1("s", 1, proof(hash))}, scope("owner", "s", 1, good))
	h.owner.apply(2, open1("s", 1, proof(next))).is("s@1 updated")
	h.stale("scope_changed")
}

// proof_never_in_refusals
func TestS4_NeitherProofNorHashIsInARefusalABindOrADescription(t *testing.T) {
	s := play(t)
	good, hash := secret(1)
	bad, _ := secret(2)
	h := hold(s, []doc{open1("s", 1, proof(hash))}, scope("owner", "s", 1, good))
	said := string(h.bind.Raw) + string(h.tool.Describe("owner", "s").Frame.Body)
	said += string(h.client.StartOpen("tool", scope("owner", "s", 1, bad)).Wait().Refused("scope_bind_proof_mismatch").Frame.Body)
	for _, secret := range []string{hash, good["bind_proof"].(string), bad["bind_proof"].(string)} {
		require.NotContains(t, said, secret)
	}
	h.commits()
}
