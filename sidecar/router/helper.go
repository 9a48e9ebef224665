package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// helper is a short-lived registration of our own: one connection, one role,
// never bound to.
type helper struct {
	link *Link
	id   string
	ops  []string // what the router offers a module
}

// registerHelper opens a helper beside l. Its close unregisters it.
func (l *Link) registerHelper(ctx context.Context) (*helper, error) {
	link, err := Dial(ctx, l.File)
	if err != nil {
		return nil, err
	}
	var random [8]byte
	rand.Read(random[:])
	h := &helper{link: link, id: wire.HelperPrefix + hex.EncodeToString(random[:])}
	hello := struct {
		Manifest    jsontext.Value `json:"manifest"`
		ProtocolVer int            `json:"protocol_ver"`
	}{helperManifest(h.id), wire.Version}
	f, err := link.ask(ctx, wire.Hello, hello)
	if err == nil {
		var ack struct {
			Ops []string `json:"subc_ops"`
		}
		err = decode("hello", f, wire.HelloAck, &ack)
		h.ops = ack.Ops
	}
	if err != nil {
		link.Close()
		return nil, fmt.Errorf("register a helper: %w", err)
	}
	return h, nil
}

func helperManifest(id string) jsontext.Value {
	type role struct {
		Role          string   `json:"role"`
		Tools         []string `json:"tools"`
		IdentityScope []string `json:"identity_scope"`
		Concurrency   string   `json:"concurrency"`
		EmitsPush     bool     `json:"emits_push"`
		SubSupervises bool     `json:"sub_supervises"`
	}
	return wire.MustMarshal(struct {
		ModuleID      string `json:"module_id"`
		ModuleVersion string `json:"module_version"`
		ProtocolVer   int    `json:"protocol_ver"`
		Provides      []role `json:"provides"`
	}{id, "1.0.0", wire.Version, []role{{
		Role: roleTool, Tools: []string{}, IdentityScope: []string{}, Concurrency: "serial",
	}}})
}

func (h *helper) close() { h.link.Close() }

// ModuleOps asks what the router offers a module, by being one for a moment.
func (l *Link) ModuleOps(ctx context.Context) ([]string, error) {
	h, err := l.registerHelper(ctx)
	if err != nil {
		return nil, err
	}
	defer h.close()
	return h.ops, nil
}
