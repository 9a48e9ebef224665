package sidecar

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"scopeward/proxy/routertest"
	"scopeward/proxy/wire"
)

// sink is a log that is written while it is read.
type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) Sync() error { return nil }

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// forms are the ways in which a secret could get into a text.
func forms(secret []byte) []string {
	numbers := strings.Trim(fmt.Sprint([]byte(secret)), "[]")
	return []string{
		string(secret), hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret)),
		base64.StdEncoding.EncodeToString(secret), base64.URLEncoding.EncodeToString(secret),
		numbers, strings.ReplaceAll(numbers, " ", ","), strings.ReplaceAll(numbers, " ", ", "),
	}
}

// Everything that can be logged at debug, both encoders, and no secret in it.
func TestNoSecretIsLogged(t *testing.T) {
	r := newRig(t)
	var out sink
	ec := zap.NewDevelopmentEncoderConfig()
	r.log = zap.New(zapcore.NewTee(
		zapcore.NewCore(zapcore.NewJSONEncoder(ec), &out, zap.DebugLevel),
		zapcore.NewCore(zapcore.NewConsoleEncoder(ec), &out, zap.DebugLevel)))
	router, s := r.startBoth("owner", "tool")
	front := r.published()
	owner, tool := router.Launch("owner"), router.Launch("tool")

	m := routertest.DialModule(t, r.front)
	m.Hello("owner", routertest.Nonce(owner))
	m.Sync(1)
	provider := routertest.DialModule(t, r.front)
	provider.Hello("tool", routertest.Nonce(tool))
	provider.Serve()
	client := routertest.Dial(t, r.front)
	client.Open("tool", routertest.As(owner))
	client.OpenRefused("scope_not_live", "tool", routertest.As(owner), routertest.Scope(routertest.Selector("owner", "s", 1)))
	wrong := owner
	wrong.Nonce = strings.Repeat("5a", 32)
	client.OpenRefused(wire.CodeBadConsumerIdentity, "tool", routertest.As(wrong))
	next, err := router.Swap("owner")
	require.NoError(t, err)
	candidate := routertest.DialModule(t, r.front)
	candidate.Hello("owner", routertest.Nonce(next))
	router.Exit(tool, 0)
	provider.Ended()
	router.Close()
	r.withdrawn()
	r.stop(s)

	text := out.String()
	require.Contains(t, text, "stopped")
	secrets := map[string][]byte{"our key": front.Key, "the router's key": router.File().Key}
	for name, nonce := range map[string]string{"owner": owner.Nonce, "tool": tool.Nonce, "candidate": next.Nonce, "wrong": wrong.Nonce} {
		raw, err := hex.DecodeString(nonce)
		require.NoError(t, err)
		secrets[name+"'s nonce, as bytes"] = raw
		secrets[name+"'s nonce"] = []byte(nonce)
	}
	for name, secret := range secrets {
		for _, form := range forms(secret) {
			require.NotContains(t, text, form, name)
		}
	}
	require.NotContains(t, text, wire.MarkPrefix)
}
