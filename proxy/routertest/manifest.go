package routertest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// roleMembers are the members of each kind of role, in the order an array gives
// them. All but a management_surface's concurrency must be there.
var roleMembers = map[string][]string{
	"tool_provider":      {"tools", "identity_scope", "concurrency", "emits_push", "sub_supervises"},
	"management_surface": {"operations", "config_schema", "observability", "identity_scope", "concurrency"},
	"internal_service":   {"service_id", "transport", "agent_facing", "operations"},
	"pipeline_stage":     {"stage", "applies_to", "interface", "declares_frozen_floor", "needs_signals", "conformance_class"},
}

// roles reads a list of role declarations.
func (s shape) roles(name string) ([]role, error) {
	list, err := s.list(name)
	if err != nil {
		return nil, err
	}
	roles := make([]role, 0, len(list))
	for _, raw := range list {
		kind, err := readTag(raw, "role")
		if err != nil {
			return nil, err
		}
		names, known := roleMembers[kind]
		if !known {
			return nil, fmt.Errorf("unknown variant %q", kind)
		}
		d, err := readShape(raw, append([]string{"role"}, names...)...)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, ok := d[name]; !ok && (kind != "management_surface" || name != "concurrency") {
				return nil, fmt.Errorf("missing field %q", name)
			}
		}
		r := role{kind: kind, raw: compact(raw)}
		if kind == "internal_service" {
			if r.serviceID, err = d.text("service_id"); err != nil {
				return nil, err
			}
		}
		roles = append(roles, r)
	}
	return roles, nil
}

func (s shape) capabilities(name string) (*capabilities, error) {
	if s.absent(name) {
		return nil, nil
	}
	d, err := readShape(s[name], "provides", "requires", "must_never_reach")
	if err != nil {
		return nil, err
	}
	c := &capabilities{Provides: []string{}, Requires: []requirement{}, MustNeverReach: []string{}}
	if _, ok := d["provides"]; ok {
		if c.Provides, err = d.texts("provides"); err != nil {
			return nil, err
		}
	}
	if _, ok := d["must_never_reach"]; ok {
		if c.MustNeverReach, err = d.texts("must_never_reach"); err != nil {
			return nil, err
		}
	}
	if _, ok := d["requires"]; ok {
		if c.Requires, err = d.requirements("requires"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (s shape) requirements(name string) ([]requirement, error) {
	list, err := s.list(name)
	if err != nil {
		return nil, err
	}
	out := []requirement{}
	for _, raw := range list {
		d, err := readShape(raw, "capability", "need")
		if err != nil {
			return nil, err
		}
		var req requirement
		err = errors.Join(readInto(&req.Capability, d.text, "capability"), readInto(&req.Need, d.text, "need"))
		if err != nil {
			return nil, firstOf(err)
		}
		if req.Need != "required" && req.Need != "optional" {
			return nil, fmt.Errorf("unknown variant %q", req.Need)
		}
		out = append(out, req)
	}
	return out, nil
}

var errGrammar = errors.New("a capability is not spelled name/vN")

// grammar reports the first capability that is not spelled <name>/v<N>.
func (c *capabilities) grammar() error {
	if c == nil {
		return nil
	}
	for _, list := range [][]string{c.Provides, c.MustNeverReach} {
		for _, id := range list {
			if !validCapability(id) {
				return errGrammar
			}
		}
	}
	for _, req := range c.Requires {
		if !validCapability(req.Capability) {
			return errGrammar
		}
	}
	return nil
}

// checkGrammar looks at a Hello's capabilities where the router does first: in a
// manifest that is an object, in a body that is an object. In an array the same
// fault is a malformed Hello.
func checkGrammar(body jsontext.Value) error {
	manifest, ok := member(body, "manifest")
	if !ok {
		return nil
	}
	declared, ok := member(manifest, "capabilities")
	if !ok {
		return nil
	}
	if declared.Kind() != '{' {
		return errGrammar
	}
	caps, err := shape{"capabilities": declared}.capabilities("capabilities")
	if err != nil {
		return errGrammar
	}
	return caps.grammar()
}

func member(raw jsontext.Value, name string) (jsontext.Value, bool) {
	if raw.Kind() != '{' {
		return nil, false
	}
	o, err := wire.ParseObject(raw)
	if err != nil {
		return nil, false
	}
	return o.Get(name)
}

func validCapability(id string) bool {
	name, version, ok := strings.Cut(id, "/v")
	if !ok || name == "" || len(name) > 64 || strings.Contains(name, "--") {
		return false
	}
	for i := range len(name) {
		c := name[i]
		lower, digit := c >= 'a' && c <= 'z', c >= '0' && c <= '9'
		switch {
		case i == 0 && !lower, !lower && !digit && c != '-', i == len(name)-1 && c == '-':
			return false
		}
	}
	n, err := strconv.ParseUint(version, 10, 32)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == version
}
