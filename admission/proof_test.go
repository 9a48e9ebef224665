package admission

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"scopeward/table"
)

const proofRule = "4 bind proof"

func TestS4_ANonReservedOpenerPresentsTheMatchingProof(t *testing.T) {
	w := newTestWorld(t)
	proof, hash := secret(1)
	other, _ := secret(2)
	w.sync("core", record("s", hash, directCarries))
	requireRefused(t, CodeBindProofRequired, proofRule, w.admit("s"))
	requireRefused(t, CodeBindProofMismatch, proofRule, w.admit("s", proving(other)))
	requireAdmitted(t, w.admit("s", proving(proof)))
	require.False(t, CodeBindProofRequired.Retryable())
	require.False(t, CodeBindProofMismatch.Retryable())
}

func TestS4_AReservedOpenerNeedsNoProofAndAnyItSendsIsIgnored(t *testing.T) {
	w := newTestWorld(t)
	proof, hash := secret(1)
	other, _ := secret(2)
	w.sync("core", record("s", hash, `"carriers":[{"principal":{"kind":"reserved","module_id":"mate"}}]`))
	for _, p := range []table.Principal{core, mate} {
		requireAdmitted(t, w.admit("s", by(p)))
		for _, sent := range []string{proof, other, "", "garbage!"} {
			requireAdmitted(t, w.admit("s", by(p), proving(sent)))
		}
	}
}

func TestS4_ARecordWithoutAHashIgnoresAProof(t *testing.T) {
	w := newTestWorld(t)
	proof, _ := secret(1)
	w.sync("core", record("s", directCarries))
	for _, sent := range []string{proof, "", "garbage!", strings.Repeat("\n", 43)} {
		requireAdmitted(t, w.admit("s", proving(sent)))
	}
}

func TestS4_AProofIsUnpaddedBase64urlOfThirtyTwoBytes(t *testing.T) {
	w := newTestWorld(t)
	b := [32]byte{0: 0xfb, 1: 0xef, 2: 0xbe, 31: 0xff}
	sum := sha256.Sum256(b[:])
	w.sync("core", record("s", directCarries, fmt.Sprintf(`"bind_proof_sha256":"%x"`, sum)))
	proof := base64.RawURLEncoding.EncodeToString(b[:])
	std := base64.RawStdEncoding.EncodeToString(b[:])
	require.NotEqual(t, proof, std, "the secret tells the alphabets apart")
	last := proof[len(proof)-1]

	for name, bad := range map[string]string{
		"empty":             "",
		"padded":            proof + "=",
		"standard alphabet": std,
		"standard, padded":  std + "=",
		"hex":               hex.EncodeToString(b[:]),
		"the hash itself":   hex.EncodeToString(sum[:]),
		"short":             proof[:42],
		"long":              proof + "A",
		"trailing bits":     proof[:42] + string(last+1),
		"leading blank":     " " + proof,
		"trailing newline":  proof + "\n",
		"newline, 43":       proof[:42] + "\n",
		"CR inside, 43":     proof[:20] + "\r" + proof[21:],
		"newline inside":    proof[:20] + "\n" + proof[20:],
		"no base64 at all":  strings.Repeat("!", 43),
		"NUL":               proof[:42] + "\x00",
	} {
		d := w.admit("s", proving(bad))
		require.Equal(t, CodeBindProofMismatch, d.Code, name)
	}
	requireAdmitted(t, w.admit("s", proving(proof)))
}

// A digest of nothing is never compared as if it were one.
func TestS4_AMalformedProofMatchesNotEvenAHashOfZeroes(t *testing.T) {
	w := newTestWorld(t)
	w.sync("core", record("s", directCarries, `"bind_proof_sha256":"`+strings.Repeat("0", 64)+`"`))
	for _, bad := range []string{"", "garbage!", strings.Repeat("A", 42) + "=", strings.Repeat("A", 43)} {
		requireRefused(t, CodeBindProofMismatch, proofRule, w.admit("s", proving(bad)))
	}
}

func TestS4_EverySecretMatchesItsOwnHashOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "secret")
		flip := rapid.IntRange(0, 255).Draw(t, "bit")
		hash := table.ProofHash(sha256.Sum256(b))
		d := digestProof(base64.RawURLEncoding.EncodeToString(b))
		require.True(t, d.valid)
		require.True(t, d.matches(&hash))
		hash[flip/8] ^= 1 << (flip % 8)
		require.False(t, d.matches(&hash))
	})
}

func TestS4_ProofsEnterNoMessageAndNoStamp(t *testing.T) {
	w := newTestWorld(t)
	proof, hash := secret(1)
	other, _ := secret(2)
	w.sync("core", record("s", hash, `"attributes":{"flow_id":"f"}`, directCarries))
	digest := strings.Split(hash, `"`)[3]
	asks := []Ask{w.ask("s", proving(proof), declaring(CallModes))}
	for _, sent := range []string{proof, other, proof + "="} {
		for _, b := range breakages() {
			if b.rule == proofRule {
				continue
			}
			asks = append(asks, w.ask("s", proving(sent), b.ask))
		}
		asks = append(asks, w.ask("s", proving(sent)))
	}
	for _, a := range asks {
		d := Admit(w.table, a)
		marshaled, err := json.Marshal(a.Selector)
		require.NoError(t, err)
		for _, text := range []string{
			d.Message, string(d.Stamp), d.Rule, string(marshaled),
			fmt.Sprintf("%v %+v %#v", d, d, d), fmt.Sprintf("%v %+v %#v", a, a, a), fmt.Sprintf("%v", &a.Selector),
		} {
			for _, hidden := range []string{proof, other, digest} {
				require.NotContains(t, text, hidden)
				require.NotContains(t, text, hidden[:16])
			}
		}
	}
}

// The time of a comparison is not seen by a test, so the source is: digests are
// compared by crypto/subtle and by nothing else.
func TestS4_DigestsAreComparedInConstantTime(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "proof.go", nil, 0)
	require.NoError(t, err)
	constant := 0
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch callee := selector(n.Fun); callee {
			case "subtle.ConstantTimeCompare":
				constant++
			case "bytes.Equal", "bytes.Compare", "strings.Compare", "slices.Equal":
				t.Errorf("%s in proof.go", callee)
			}
		case *ast.BinaryExpr:
			for _, side := range []ast.Expr{n.X, n.Y} {
				name := selector(side)
				require.NotContains(t, []string{"d.sum", "hash", "secret"}, name, "compared with %s", n.Op)
			}
		}
		return true
	})
	require.Equal(t, 1, constant)
}

func selector(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return selector(e.X)
	case *ast.SelectorExpr:
		return selector(e.X) + "." + e.Sel.Name
	}
	return ""
}
