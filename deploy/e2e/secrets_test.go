package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scopeward/proxy/connfile"
	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"

	"github.com/stretchr/testify/require"
)

// TestSecrets plays everything in which a secret takes part and then looks for
// each of them, in every form it could take, in all that was written.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cast())
	w.metricsAddr = "127.0.0.1:" + strconv.Itoa(routertest.FreePort(t))
	w.configure()
	proof := bytes.Repeat([]byte("proof-of-bind..!"), 2)
	wrong := bytes.Repeat([]byte("another-proof.!?"), 2)
	digest := sha256.Sum256(proof)
	guarded := record("s", 1)
	guarded["bind_proof_sha256"] = hex.EncodeToString(digest[:])
	w.play(idOwner, syncStep(1, guarded))
	w.start()
	w.waitSynced(idOwner, 1)

	client := w.client()
	for _, c := range []struct {
		proof any
		code  string
	}{
		{nil, "scope_bind_proof_required"},
		{base64.RawURLEncoding.EncodeToString(wrong), "scope_bind_proof_mismatch"},
		{base64.URLEncoding.EncodeToString(proof), "scope_bind_proof_mismatch"},
		{base64.RawURLEncoding.EncodeToString(proof), ""},
	} {
		body := w.scoped(idEcho, "s", 1)
		if c.proof != nil {
			body["scope"].(object)["bind_proof"] = c.proof
		}
		_, refused := client.open(body)
		if c.code == "" {
			require.Nil(t, refused)
			continue
		}
		require.NotNil(t, refused)
		require.Equal(t, c.code, refused.Code)
	}
	carrier := w.carry(idCarrier)
	requireOK(t, carrier.open("s", idOld, selector("s", 1)))
	nonce := launchNonce(t, w.pid(idCarrier))
	forged := strings.Repeat("5ec2", 16)
	for _, presented := range []string{nonce, forged} {
		body := w.scoped(idOld, "s", 1)
		body["consumer_identity"] = object{"module_id": idCarrier, "launch_nonce": presented}
		client.open(body)
	}
	marked := w.opening(idOld)
	marked["consumer_capabilities"] = []string{wire.MarkPrefix + strings.Repeat("ab", 16)}
	_, refused := client.open(marked)
	require.Equal(t, wire.CodeInvalidRequest, refused.Code)
	malformed := record("t", 1)
	malformed["bind_proof_sha256"] = strings.ToUpper(hex.EncodeToString(digest[:]))
	thief := w.register("thief", nil)
	answer := thief.request(object{"op": wire.OpScopeSync, "generation": 1, "scopes": []object{malformed}})
	require.Equal(t, wire.Error, answer.Type)

	secrets := map[string][]byte{
		"the bind proof": proof, "another bind proof": wrong, "the proof's digest": digest[:],
		"the forged nonce": []byte(forged), "the forged nonce's bytes": unhex(t, forged),
	}
	for id := range w.modules {
		n := launchNonce(t, w.pid(id))
		secrets["the nonce of "+id] = []byte(n)
		secrets["the nonce's bytes of "+id] = unhex(t, n)
	}
	for name, path := range map[string]string{"the router's key": w.routerFile(), "the sidecar's key": w.frontFile()} {
		f, err := connfile.Read(path)
		require.NoError(t, err)
		secrets[name] = f.Key
	}
	written := w.operatorReads()
	written = append(written, w.metrics()...)
	w.sidecar.stop(syscall.SIGTERM, patience)
	written = append(written, w.sidecar.output()...)
	written = append(written, w.router.output()...)
	require.Greater(t, len(w.sidecar.output()), 2000, "the log is on")
	for name, secret := range secrets {
		for form, text := range forms(secret) {
			require.False(t, bytes.Contains(bytes.ToLower(written), bytes.ToLower([]byte(text))), "%s is in a log, in its %s form", name, form)
		}
	}
	require.False(t, regexp.MustCompile(regexp.QuoteMeta(wire.MarkPrefix)+`[0-9a-f]`).Match(written), "a mark is in a log")
}

// operatorReads is what the reading commands print.
func (w *world) operatorReads() []byte {
	w.t.Helper()
	var all []byte
	for _, command := range []string{"status", "scopes", "routes", "launches", "refusals"} {
		for _, form := range [][]string{nil, {"--json"}} {
			args := append([]string{command, "--config", w.path("side/config.jsonc")}, form...)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			out, err := exec.CommandContext(ctx, scopeward(w.t), args...).CombinedOutput()
			cancel()
			require.NoError(w.t, err, "%s: %s", command, out)
			require.NotEmpty(w.t, out, command)
			all = append(all, out...)
		}
	}
	require.Contains(w.t, string(all), "scope_bind_proof_mismatch", "the refusals are read")
	return all
}

// metrics is the page that Prometheus reads.
func (w *world) metrics() []byte {
	w.t.Helper()
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + w.metricsAddr + "/metrics")
	require.NoError(w.t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	require.Contains(w.t, string(page), "scopeward_")
	return page
}

// forms are the ways to write the first bytes of a secret: a piece is as bad as
// the whole.
func forms(secret []byte) map[string]string {
	piece := secret[:12]
	numbers := make([]string, len(piece))
	for i, b := range piece {
		numbers[i] = strconv.Itoa(int(b))
	}
	hexes := make([]string, len(piece))
	for i, b := range piece {
		hexes[i] = fmt.Sprintf("0x%02x", b)
	}
	return map[string]string{
		"plain":            string(piece),
		"hex":              hex.EncodeToString(piece),
		"base64":           base64.StdEncoding.EncodeToString(piece),
		"base64url":        base64.URLEncoding.EncodeToString(piece),
		"JSON array":       strings.Join(numbers, ","),
		"JSON array, wide": strings.Join(numbers, ", "),
		"Go slice":         strings.Join(numbers, " "),
		"hex array":        strings.Join(hexes, ", "),
	}
}

// launchNonce reads the nonce that the router gave a process.
func launchNonce(t *testing.T, pid int) string {
	t.Helper()
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	require.NoError(t, err)
	for _, entry := range strings.Split(string(env), "\x00") {
		if nonce, ok := strings.CutPrefix(entry, "SUBC_LAUNCH_NONCE="); ok {
			return nonce
		}
	}
	require.Fail(t, "the process has no launch nonce")
	return ""
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}
