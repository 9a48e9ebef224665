package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// soakRefs is how many refs the soak's owner has, live or not.
const soakRefs = 16

// sole is one scope as the model keeps it.
type sole struct {
	live    bool
	epoch   uint64   // of the last session under the ref, live or ended
	direct  []string // targets that a direct opener may reach; nil: it is no carrier
	carrier bool     // the carrier is one, for every target
	proof   bool     // an open must bring the proof
}

// picture is the owner's whole set at one time. It is never changed.
type picture [soakRefs]sole

// attempt is one open, as far as its outcome depends on it.
type attempt struct {
	ref    int
	epoch  uint64 // 0: none is named
	as     string // "direct" or the carrier's id
	target string
	proof  string // as it is sent, "" for none
}

func refName(i int) string { return fmt.Sprintf("ref-%02d", i) }

var (
	goodProof = base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte("g"), 32))
	badProof  = base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte("b"), 32))
)

// outcome is what an open must be answered with: a refusal's code, "" when it is
// admitted. The order is the contract's.
func (p *picture) outcome(a attempt) string {
	s := p[a.ref]
	allowed := s.carrier
	if a.as == "direct" {
		allowed = slices.Contains(s.direct, a.target)
	}
	switch {
	case a.epoch == 0:
		return "scope_epoch_required"
	case !s.live:
		return "scope_not_live"
	case a.epoch != s.epoch:
		return "scope_ended"
	case !allowed:
		return "scope_not_carrier"
	case a.as != "direct": // a module is asked for no proof
		return ""
	case s.proof && a.proof == "":
		return "scope_bind_proof_required"
	case s.proof && a.proof != goodProof:
		return "scope_bind_proof_mismatch"
	}
	return ""
}

// holds reports whether a route that was admitted for a stays: its session is
// the live one and its opener may still carry it.
func (p *picture) holds(a attempt) bool {
	a.proof = goodProof
	return p.outcome(a) == ""
}

// records is the set as a sync sends it.
func (p *picture) records() []object {
	list := []object{}
	for i := range p {
		if p[i].live {
			list = append(list, p[i].record(i))
		}
	}
	return list
}

func (s sole) record(i int) object {
	carriers := []object{}
	if s.carrier {
		carriers = append(carriers, object{"principal": reserved(idCarrier)})
	}
	if s.direct != nil {
		carriers = append(carriers, object{"principal": object{"kind": "direct"}, "targets": s.direct})
	}
	r := object{"ref": refName(i), "scope_epoch": s.epoch, "kind": "head", "attributes": object{}, "carriers": carriers}
	if s.proof {
		sum := sha256.Sum256(bytes.Repeat([]byte("g"), 32))
		r["bind_proof_sha256"] = hex.EncodeToString(sum[:])
	}
	return r
}

// turned is the picture after one change, and which ref it was.
func (p picture) turned(r *rand.Rand) (picture, int) {
	i := r.IntN(soakRefs)
	s := &p[i]
	switch {
	case !s.live:
		*s = sole{live: true, epoch: s.epoch + 1, carrier: true, direct: []string{idEcho}}
		return p, i
	}
	switch r.IntN(6) {
	case 0:
		s.live = false
	case 1:
		s.epoch++
	case 2:
		s.carrier = !s.carrier
	case 3:
		s.direct = [][]string{nil, {idEcho}, {idEcho, idOld}, {idOld}}[r.IntN(4)]
	case 4:
		s.proof = !s.proof
	default: // sent again as it is
	}
	return p, i
}

// chronicle is every picture in order. The last may be under way.
type chronicle struct {
	mu       sync.Mutex
	pictures []picture
	applied  int // the last one that was answered
}

// began returns the picture that is in force for sure.
func (c *chronicle) began() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied
}

// since returns every picture that may have been in force since from.
func (c *chronicle) since(from int) []picture {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pictures[from:])
}

func (c *chronicle) last() picture {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pictures[len(c.pictures)-1]
}

func (c *chronicle) send(p picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pictures = append(c.pictures, p)
}

func (c *chronicle) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = len(c.pictures) - 1
}

// fits reports whether an open that saw these pictures may be answered code. One
// that saw a change may be told of it too.
func fits(seen []picture, a attempt, code string) bool {
	for i := range seen {
		if seen[i].outcome(a) == code {
			return true
		}
	}
	return len(seen) > 1 && (code == "scope_changed" || code == "scope_ended")
}
