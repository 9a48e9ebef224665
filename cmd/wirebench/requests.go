package main

import "scopeward/proxy/wire"

// object is a JSON object to be sent.
type object map[string]any

func reserved(module string) object { return object{"kind": "reserved", "module_id": module} }

// openBody is a route.open to a module. opener is the launch that asks, the zero
// launch for nobody; scope is the scope it asks under, nil for none.
func openBody(target string, opener launch, scope object) []byte {
	body := object{
		"op":       wire.OpRouteOpen,
		"target":   object{"kind": "tool_provider", "module_id": target},
		"identity": object{"project_root": "/tmp", "harness": "wirebench", "session": "s1"},
	}
	if opener.Module != "" {
		body["consumer_identity"] = object{"module_id": opener.Module, "launch_nonce": opener.Nonce}
	}
	if scope != nil {
		body["scope"] = scope
	}
	return wire.MustMarshal(body)
}

// helloBody registers a launched module. It names health.check among its ops,
// since a router polls a module that doesn't a hundred times a second.
func helloBody(l launch) []byte {
	role := object{
		"role": "tool_provider", "tools": []string{}, "identity_scope": []string{"project", "session"},
		"concurrency": "module_managed", "emits_push": true, "sub_supervises": false,
	}
	return wire.MustMarshal(object{
		"manifest": object{
			"module_id": l.Module, "module_version": "1.0.0", "protocol_ver": wire.Version,
			"provides": []object{role},
		},
		"protocol_ver": wire.Version,
		"control_ops":  []string{wire.OpHealthCheck},
		"launch_nonce": l.Nonce,
	})
}

func describeServerBody() []byte { return wire.MustMarshal(object{"op": wire.OpServerDescribe}) }
